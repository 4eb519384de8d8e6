"""TripletMarginLoss over all triplets in blocks: sorted positives, and a binary search for every negative.

A positive at distance t from the anchor (the margin added) is violated by the negatives nearer than t. With
an anchor's thresholds sorted, a negative's place among them is the number of thresholds it is not nearer
than; the places' histogram gives the number of negatives of each positive. Nothing of size B x B x B, no sort
of whole rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.blocks import FAR, DistanceBlocks
from losslib.kernels.function import Found
from losslib.kernels.sorted_rows import Block, SortedRows
from losslib.reducers import AvgNonZeroReducer, SumReducer


def triplets(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """TripletMarginLoss."""
    assert batch.labels is not None
    rows = SortedRows(x, batch.labels, loss.distance)
    blocks = DistanceBlocks(rows, loss.distance, 1, upper=False)
    total, active = 0.0, 0.0
    for block in rows.blocks():
        values, at = blocks.of(block)
        separation = values.neg() if blocks.inverted else values
        part = _Part(rows, block, separation, loss.margin)
        total += part.total
        active += part.active
        if wanted and part.active:
            slope = part.slope()
            if not blocks.inverted:
                slope.div_(values if at is not blocks.exact else torch.threshold(values, 0.0, torch.inf))
            blocks.pull(at, 0, block, slope, 0)
    each = _each(loss, rows, active)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    return Found(value, blocks.gradient([-each if blocks.inverted else each]))


def _each(loss: Any, rows: SortedRows, active: float) -> float:
    kind = type(loss.reducer)
    if kind is SumReducer:
        return 1.0
    if kind is AvgNonZeroReducer:
        return 1 / max(active, 1.0)
    sizes = rows.sizes.double()
    return 1 / max(float(((sizes - 1) * (len(rows) - sizes)).sum()), 1.0)


_SEARCHED = 1 << 16  # entries searched at a time


class _Part:
    """The triplets of a block of anchors."""

    def __init__(self, rows: SortedRows, block: Block, separation: Tensor, margin: float) -> None:
        place = slice(block.start, block.stop)
        ends, sizes = rows.ends[place].unsqueeze(1), rows.sizes[place].unsqueeze(1)
        depth = int(sizes.max()).bit_length()
        self.width = 2**depth - 1  # thresholds of a row, the missing ones below everything
        number = torch.arange(self.width, device=sizes.device)
        columns = ends - 1 - number
        own = torch.arange(block.start, block.stop, device=sizes.device).unsqueeze(1)
        missing = (number >= sizes) | (columns == own)
        self.columns = columns.clamp_min(0)
        near = separation.gather(1, self.columns).masked_fill_(missing, -FAR)
        farthest = near.amax(1, keepdim=True)
        farthest = torch.where(farthest == -FAR, 0.0, farthest)
        # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
        self.thresholds, order = near.sub_(farthest).add_(margin).masked_fill_(missing, -FAR).sort(1)
        self.columns = self.columns.gather(1, order)
        self.apart = separation - farthest
        width = block.high - block.low
        same = rows.same(block, block.low, block.high)
        self.apart[:, block.low : block.low + width].add_(same, alpha=FAR)
        self._search(depth)

    def _search(self, depth: int) -> None:
        """Fill in the counts, a few rows at a time, so that the indices stay in the cache."""
        apart = self.apart
        rows, columns = apart.shape
        step = max(1, _SEARCHED // columns)
        places = torch.zeros(rows, self.width + 1, dtype=apart.dtype, device=apart.device)
        self.of_negative = torch.zeros_like(apart)
        index = torch.empty(min(step, rows), columns, dtype=torch.int64, device=apart.device)
        reached = torch.empty_like(index, dtype=apart.dtype)
        ones = torch.ones_like(reached)
        for first in range(0, rows, step):
            part = slice(first, min(first + step, rows))
            at, found, size = apart[part], self.of_negative[part], part.stop - first
            thresholds, place, level = self.thresholds[part], index[:size], reached[:size]
            for power in reversed(range(depth)):
                torch.gather(thresholds[:, (1 << power) - 1 :], 1, place.copy_(found), out=level)
                found.add_(torch.ge(at, level, out=level), alpha=1 << power)
            places[part].scatter_add_(1, place.copy_(found), ones[:size])
        self.of_positive = places.cumsum_(1)[:, : self.width]
        self.of_negative.neg_().add_(self.width)  # from thresholds reached to thresholds beyond
        self.active = float(self.of_negative.sum(1).double().sum())
        by_row = (self.of_positive * self.thresholds).sum(1) - (self.of_negative * apart).sum(1)
        self.total = float(by_row.double().sum())

    def slope(self) -> Tensor:
        """The derivative of the sum by each distance, (b, N)."""
        return self.of_negative.neg_().scatter_add_(1, self.columns, self.of_positive)
