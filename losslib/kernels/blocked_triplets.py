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
from losslib.kernels import reduce
from losslib.kernels.blocks import FAR, DistanceBlocks
from losslib.kernels.function import Found
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import Block, SortedRows
from losslib.kernels.threshold_search import AT_A_TIME, search


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
            part = _OfBlock(rows, block, values.neg() if blocks.inverted else values, loss.margin)
            total += part.total
            active += part.active
            if wanted and part.active:
                slope = part.slope()
                if not blocks.inverted:
                    slope.div_(values if at is not blocks.exact else torch.threshold(values, 0.0, torch.inf))
                blocks.pull(at, block, slope)
    each = reduce.each(loss.reducer, number_of_triplets(rows.counts), active)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    return Found(value, blocks.gradient(-each))


def number_of_triplets(counts: list[int]) -> float:
    """All triplets of classes of so many rows."""
    total = sum(counts)
    return float(sum(count * (count - 1) * (total - count) for count in counts))


_ENTRIES = 1 << 18  # of a block, which has from
_LEAST, _MOST = 96, 256  # rows on
_FEW = 10  # thresholds up to which comparing with each is quicker than a search


class Triplets:
    """The triplets of a block of anchors."""

    columns: Tensor  # of each anchor's positives (b, m), and of places that hold none

    def place(self, separation: Tensor, near: Tensor, margin: float) -> None:
        """Distances (b, N) and those of the positives (b, m), which it overwrites; -FAR: none."""
        farthest = near.amax(1, keepdim=True)
        farthest = torch.where(farthest == -FAR, 0.0, farthest)
        # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
        self.thresholds = near.sub_(farthest).add_(margin)
        self.apart = torch.sub(separation, farthest, out=take(*separation.shape, dtype=near.dtype))

    def count(self, none: int) -> None:
        """Count who violates what, once those that are no negatives are FAR apart.

        none: how many places of an anchor hold no positive for certain.
        """
        self.slopes = take(*self.apart.shape, dtype=self.apart.dtype)  # minus the positives beyond each
        if self.thresholds.shape[1] - none <= _FEW:
            self._compare()
        else:
            thresholds, order = self.thresholds.sort(1)
            self.thresholds, order = thresholds[:, none:], order[:, none:]  # they are the least
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


class _OfBlock(Triplets):
    """Those of a block of a sorted batch against all of it."""

    def __init__(self, rows: SortedRows, block: Block, separation: Tensor, margin: float) -> None:
        own = torch.arange(block.start, block.stop).unsqueeze(1)
        starts = rows.starts[block.start : block.stop].unsqueeze(1)
        largest = max(rows.counts[number] for number in rows.classes_of(block))
        number = torch.arange(largest)
        self.columns = (starts + number).clamp_(max=len(rows) - 1)
        near = separation.gather(1, self.columns)
        if largest > min(rows.counts):
            sizes = rows.sizes[block.start : block.stop].unsqueeze(1)
            near.masked_fill_(number >= sizes, -FAR)
        self.place(separation, near.scatter_(1, own - starts, -FAR), margin)
        rows.put(FAR, self.apart, block, 0)
        self.count(none=1)  # the row itself
