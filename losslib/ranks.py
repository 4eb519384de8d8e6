"""Soft ranks: how many entries of a row come before another, each counted by a sigmoid, in blocks of rows."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from losslib.block_triplets import columns_of


def counts_before(
    similarity: Tensor, items: Tensor, among: tuple[Tensor, Tensor], temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """For each item of each row, the soft number of entries of two sets that are more similar than it.

    Nothing larger than a block is kept: each is computed again for its gradient.

    Args:
        similarity: similarities (B, R).
        items: mask (B, R) of the entries to rank, at most m a row.
        among: two masks (B, R) of the entries that are counted; an item in its own set counts as one half.
        temperature: width of the sigmoid that takes the place of a step.

    Returns the two counts, both (B, m), and a mask (B, m) of the places that hold an item.
    """
    columns = columns_of(items)
    rows, width = similarity.shape
    kept = torch.arange(columns.shape[1], device=items.device) < items.sum(1, keepdim=True)
    scaled = similarity / temperature
    sets = torch.stack([mask.to(similarity.dtype) for mask in among], dim=2)  # (B, R, 2)
    largest = max(_BLOCK, 4 * rows * width)
    step = max(1, largest // max(1, columns.shape[1] * width))
    if rows <= step or not torch.is_grad_enabled():
        counts = [_counts(*block) for block in _blocks(step, scaled, columns, sets)]
    else:
        counts = [
            checkpoint(_counts, *block, use_reentrant=False, preserve_rng_state=False)
            for block in _blocks(step, scaled, columns, sets)
        ]
    both = torch.cat(counts)
    return both.select(2, 0), both.select(2, 1), kept


def _blocks(step: int, *parts: Tensor) -> list[tuple[Tensor, ...]]:
    rows = len(parts[0])
    starts = range(0, max(rows, 1), step)
    return [tuple(part.narrow(0, at, min(step, rows - at)) for part in parts) for at in starts]


def _counts(scaled: Tensor, columns: Tensor, sets: Tensor) -> Tensor:
    """Soft counts (b, m, 2) of a block: scaled (b, R), columns (b, m), sets (b, R, 2)."""
    own = scaled.gather(1, columns).unsqueeze(2)
    return torch.sigmoid(scaled.unsqueeze(1) - own) @ sets


_BLOCK = 1 << 16  # comparisons in memory at a time, or four matrices where that is more
