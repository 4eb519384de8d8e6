"""At most so many tuples of one anchor, each set of them equally likely."""

from __future__ import annotations

import torch
from torch import Tensor


def at_most(anchors: Tensor, limit: int) -> Tensor:
    """Places (K,), ascending, that keep at most `limit` tuples of each anchor, drawn without replacement.

    anchors: (T,) int64, in any order.
    """
    order = _random(anchors.shape, anchors.device).argsort()
    order = order[anchors[order].argsort(stable=True)]
    grouped = anchors[order]
    first = torch.searchsorted(grouped, grouped)
    rank = torch.arange(len(grouped), device=grouped.device) - first
    kept, _ = order[rank < limit].sort()
    return kept


def drawn(counts: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Different numbers from 0 to each count - 1, `limit` of them or all; in memory of twice the result.

    counts: (B,) int64, of which a count may be far above what memory could list.

    Returns the anchors (K,) they belong to and the numbers (K,).
    """
    few = counts <= 2 * limit  # all are listed, then some kept
    listed = counts * few
    owner = torch.arange(len(counts), device=counts.device).repeat_interleave(listed)
    number = torch.arange(len(owner), device=counts.device) - (listed.cumsum(0) - listed)[owner]
    kept = at_most(owner, limit)
    (many,) = few.logical_not().nonzero(as_tuple=True)
    table = _different(counts[many].unsqueeze(1), limit)
    return torch.cat((owner[kept], many.repeat_interleave(limit))), torch.cat((number[kept], table.flatten()))


def _different(counts: Tensor, limit: int) -> Tensor:
    """Different numbers (M, limit) below counts (M, 1), each above 2 limit: what repeats is drawn again."""
    table, again = counts.new_full((len(counts), limit), -1), True
    while again:
        fresh = (_random(table.shape, counts.device) * counts).long().minimum(counts - 1)
        repeats = torch.zeros_like(table, dtype=torch.bool)
        repeats[:, 1:] = table[:, 1:] == table[:, :-1]
        table = torch.where(repeats | (table < 0), fresh, table).sort(1).values
        again = bool((table[:, 1:] == table[:, :-1]).any())
    return table


def _random(shape: torch.Size, device: torch.device) -> Tensor:
    """Random numbers in double precision, so that ties practically do not occur."""
    return torch.rand(shape, dtype=torch.float64, device=device)
