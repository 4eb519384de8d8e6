"""TripletMarginLoss over all triplets in blocks: sorted positives, and a binary search for every negative.

A positive at distance t from the anchor (the margin added) is violated by the negatives nearer than t. With
an anchor's thresholds sorted, a negative's place among them is the number of thresholds it is not nearer
than; the places' histogram gives the number of negatives of each positive. With few thresholds every negative
is compared with all of them instead. Nothing of size B x B x B, no sort of whole rows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.blocks import FAR, DistanceBlocks
from losslib.kernels.function import Found
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import Block, SortedRows
from losslib.kernels.threshold_search import AT_A_TIME, search
from losslib.reducers import AvgNonZeroReducer, SumReducer


def triplets(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """TripletMarginLoss."""
    assert batch.labels is not None
    rows = SortedRows(x, batch.labels, loss.distance)
    height = min(max(_LEAST, min(_MOST, _ENTRIES // len(rows))), len(rows))
    blocks = DistanceBlocks(rows, loss.distance, False, height)
    total, active = 0.0, 0.0
    for block in rows.blocks(height):
        values, at = blocks.of(block)
        assert values is not None
        with lease():  # of what one block needs
            part = _Part(rows, block, values.neg() if blocks.inverted else values, loss.margin)
            total += part.total
            active += part.active
            if wanted and part.active:
                slope = part.slope()
                if not blocks.inverted:
                    slope.div_(values if at is not blocks.exact else torch.threshold(values, 0.0, torch.inf))
                blocks.pull(at, block, slope)
    each = _each(loss, rows, active)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    return Found(value, blocks.gradient(-each))


def _each(loss: Any, rows: SortedRows, active: float) -> float:
    kind = type(loss.reducer)
    if kind is SumReducer:
        return 1.0
    if kind is AvgNonZeroReducer:
        return 1 / max(active, 1.0)
    sizes = rows.sizes.double()
    return 1 / max(float(((sizes - 1) * (len(rows) - sizes)).sum()), 1.0)


_ENTRIES = 1 << 18  # of a block, which has from
_LEAST, _MOST = 96, 256  # rows on
_FEW = 10  # thresholds up to which comparing with each is quicker than a search


class _Part:
    """The triplets of a block of anchors."""

    def __init__(self, rows: SortedRows, block: Block, separation: Tensor, margin: float) -> None:
        own = torch.arange(block.start, block.stop).unsqueeze(1)
        starts = rows.starts[block.start : block.stop].unsqueeze(1)
        largest = max(rows.counts[number] for number in rows.classes_of(block))
        number = torch.arange(largest)
        self.columns = (starts + number).clamp_(max=len(rows) - 1)
        near = separation.gather(1, self.columns)
        if largest > min(rows.counts):
            sizes = rows.sizes[block.start : block.stop].unsqueeze(1)
            near.masked_fill_(number >= sizes, -FAR)  # thresholds below everything
        near.scatter_(1, own - starts, -FAR)
        farthest = near.amax(1, keepdim=True)
        farthest = torch.where(farthest == -FAR, 0.0, farthest)
        # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
        self.thresholds = near.sub_(farthest).add_(margin)
        self.apart = torch.sub(separation, farthest, out=take(*separation.shape, dtype=near.dtype))
        rows.put(FAR, self.apart, block, 0)
        self.slopes = take(*self.apart.shape, dtype=near.dtype)  # minus the positives beyond each negative
        if largest - 1 <= _FEW:
            self._compare()
        else:
            # the row itself is the first, and no threshold
            thresholds, order = self.thresholds.sort(1)
            self.thresholds, order = thresholds[:, 1:], order[:, 1:]
            self.columns = self.columns.gather(1, order)
            self._search()
        self._sum()

    def _sum(self) -> None:
        """The sum of all hinges and the number of those above 0, from the counts."""
        self.active = float(self.of_positive.sum(1).double().sum())
        by_row = (self.of_positive * self.thresholds).sum(1)
        by_row.add_(torch.mul(self.slopes, self.apart, out=self.apart).sum(1))
        self.total = float(by_row.sum(dtype=torch.float64))

    def _compare(self) -> None:
        """Fill in the counts by comparing with every threshold."""
        width = self.thresholds.shape[1]
        of_positive = self.apart.new_empty(width, self.apart.shape[0])
        beyond = take(*self.apart.shape, dtype=self.apart.dtype)
        for at in range(width):
            out = beyond if at else self.slopes
            torch.lt(self.apart, self.thresholds[:, at : at + 1], out=out)
            torch.sum(out, 1, out=of_positive[at])
            if at:
                self.slopes.add_(beyond)
        self.slopes.neg_()
        self.of_positive = of_positive.t()

    def _search(self) -> None:
        """Fill in the counts, a few rows at a time, so that what is searched stays in the cache."""
        apart, (rows, many) = self.apart, self.thresholds.shape
        columns, width = apart.shape[1], 1 << many.bit_length()
        table = torch.full((rows, width), -FAR, dtype=apart.dtype)
        table[:, width - 1 - many : width - 1] = self.thresholds
        counts = torch.empty(rows, width, dtype=apart.dtype)
        step = min(max(1, AT_A_TIME // columns), rows)
        for first in range(0, rows, step):
            part = slice(first, min(first + step, rows))
            counts[part] = search(apart[part], table[part], self.slopes[part])
        self.of_positive = counts.cumsum_(1)[:, width - 1 - many : width - 1]

    def slope(self) -> Tensor:
        """The derivative of the sum by each distance, (b, N)."""
        return self.slopes.scatter_add_(1, self.columns, self.of_positive)
