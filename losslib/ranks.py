"""Soft ranks: how many entries of a row come before another, each counted by a sigmoid, in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from losslib.block_triplets import columns_of
from losslib.precision import transforming, values_are_known


def counts_before(
    similarity: Tensor, items: Tensor, others: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """For each item of each row, the soft number of items, and of others, that are more similar than it.

    Nothing larger than a block is kept: each is computed again for its gradient.

    Args:
        similarity: similarities (B, R).
        items: mask (B, R) of the entries to rank, at most m a row; each counts itself as one half.
        others: mask (B, R) of the entries that are only counted.
        temperature: width of the sigmoid that takes the place of a step.

    Returns the two counts, both (B, m), and a mask (B, m) of the places that hold an item.
    """
    columns = columns_of(items)
    scaled, dtype = similarity / temperature, similarity.dtype
    kept = torch.arange(columns.shape[1], device=items.device) < items.sum(1, keepdim=True)
    own = scaled.gather(1, columns)
    among_items = _counts(own, own, kept.to(dtype))
    return among_items, _counts(own, scaled, others.to(dtype)), kept


def _counts(own: Tensor, scaled: Tensor, weight: Tensor) -> Tensor:
    """Sum over R of weight * sigmoid(scaled - own) for each item: own (B, m), others (B, R) -> (B, m)."""
    if transforming() or not values_are_known(scaled):
        return _in_parts(_block, own, scaled, weight)[0]
    counts: Tensor = _SoftCounts.apply(own, scaled, weight)
    return counts


class _SoftCounts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, scaled: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(own, scaled, weight)
        counts = torch.empty_like(own)
        for rows, places, before in _sigmoids(own, scaled):
            counts[rows, places] = torch.bmm(before, weight[rows].unsqueeze(2)).squeeze(2)
        return counts

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        own, scaled, weight = ctx.saved_tensors
        if torch.is_grad_enabled():  # this is to be differentiated again
            by_own, by_scaled = _in_parts(_slopes, own, scaled, weight, grads[0])
            return by_own, by_scaled, None
        by_own, by_scaled = torch.empty_like(own), torch.zeros_like(scaled)
        for rows, places, before in _sigmoids(own, scaled):
            grad = grads[0][rows, places]
            slope = before.addcmul_(before, before, value=-1)
            by_own[rows, places] = torch.bmm(slope, weight[rows].unsqueeze(2)).squeeze(2).mul_(grad).neg_()
            by_scaled[rows] += torch.bmm(grad.unsqueeze(1), slope).squeeze(1)
        return by_own, by_scaled.mul_(weight), None


def _sigmoids(own: Tensor, scaled: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Blocks (b, k, R) of sigmoid(scaled - own), in one buffer, with their rows and places of items."""
    count, places = own.shape
    width = scaled.shape[1]
    step = max(1, _BLOCK // max(1, places * width))  # whole rows, or a part of one
    part = max(1, min(places, _BLOCK // max(1, width)))
    buffer = own.new_empty(min(step, max(count, 1)) * part * width)
    for at in range(0, count, step):
        rows = slice(at, min(at + step, count))
        for first in range(0, places, part):
            chosen = slice(first, min(first + part, places))
            items = own[rows, chosen].unsqueeze(2)
            out = buffer[: items.numel() * width].view(*items.shape[:2], width)
            yield rows, chosen, torch.sub(scaled[rows].unsqueeze(1), items, out=out).sigmoid_()


def _in_parts(of: Callable[..., tuple[Tensor, ...]], *given: Tensor) -> tuple[Tensor, ...]:
    """A function of tensors with B rows by automatic differentiation, block by block."""
    own, scaled = given[:2]
    step = max(1, max(_BLOCK, 4 * scaled.numel()) // max(1, own.shape[1] * scaled.shape[1]))
    if len(own) <= step:
        return of(*given)
    blocks = []
    for at in range(0, len(own), step):
        parts = (part.narrow(0, at, min(step, len(own) - at)) for part in given)
        blocks.append(checkpoint(of, *parts, use_reentrant=False, preserve_rng_state=False))
    return tuple(torch.cat(block) for block in zip(*blocks, strict=True))


def _block(own: Tensor, scaled: Tensor, weight: Tensor) -> tuple[Tensor]:
    before = torch.sigmoid(scaled.unsqueeze(1) - own.unsqueeze(2))
    return ((before @ weight.unsqueeze(2)).squeeze(2),)


def _slopes(own: Tensor, scaled: Tensor, weight: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    before = torch.sigmoid(scaled.unsqueeze(1) - own.unsqueeze(2))
    slope = before * (1 - before)
    by_own = (slope @ weight.unsqueeze(2)).squeeze(2) * -grad
    return by_own, (grad.unsqueeze(1) @ slope).squeeze(1) * weight


_BLOCK = 1 << 18  # comparisons in memory at a time, which stay in the cache
