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
from losslib.kernels.scratch import lease, upright
from losslib.kernels.sorted_rows import Block, SortedRows
from losslib.kernels.threshold_search import WHOLE, search


def triplets(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """TripletMarginLoss."""
    assert batch.labels is not None
    rows = SortedRows(x, batch.labels, loss.distance)
    height = rows.evenly(max(_LEAST, min(_MOST, _ENTRIES // len(rows))))
    blocks = DistanceBlocks(rows, loss.distance, False, height)
    total, active = 0.0, 0.0
    for block in rows.blocks(height):
        values, at = blocks.of(block)
        assert values is not None
        with lease():  # of what one block needs
            part = _OfBlock(rows, block, values, loss.margin, blocks.inverted)
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
_LEAST, _MOST = 128, 256  # rows on
_FEW = 10  # thresholds up to which comparing with each is quicker than a search


class Triplets:
    """The triplets of a block of anchors. In memory every anchor has a column of entries."""

    def __init__(self, values: Tensor, inverted: bool) -> None:
        """Distances, or similarities (`inverted`), (b, N); those of no pairs FAR, or -FAR."""
        nearest = values.amax(1, keepdim=True) if inverted else values.amin(1, keepdim=True)
        ends = (nearest, values) if inverted else (values, nearest)
        # by how much farther: added to whole distances, the margin's rounding would flip triplets
        self.apart = torch.sub(*ends, out=upright(*values.shape, dtype=values.dtype))

    def count(self, near: Tensor, none: int) -> None:
        """Count who violates what, once those that are no negatives are FAR apart.

        near: how far apart an anchor and its positives are, the margin added, (b, m), which it overwrites;
            below 0 where there is none. none: how many there are none of for certain.
        """
        self.thresholds = near.clamp_min_(0.0)  # nothing is below 0
        self.slopes = upright(*self.apart.shape, dtype=self.apart.dtype)  # minus the positives beyond each
        if near.shape[1] - none <= _FEW:
            self._compare()
        else:
            thresholds, order = near.view(WHOLE[near.dtype]).sort(1)
            # those that are none are the least
            counts = search(self.apart.t(), thresholds[:, none:].t(), self.slopes.t())
            self.of_positive = torch.zeros_like(near).scatter_(1, order[:, none:], counts.t())
        self._sum()

    def _sum(self) -> None:
        """The sum of all hinges and the number of those above 0, from the counts."""
        self.active = float(self.of_positive.sum(dtype=torch.float64))
        by_row = torch.mul(self.slopes, self.apart, out=self.apart).sum(1)
        by_row.add_((self.of_positive * self.thresholds).sum(1))
        self.total = float(by_row.sum(dtype=torch.float64))

    def _compare(self) -> None:
        """Fill in the counts by comparing with every threshold."""
        thresholds = self.thresholds.t().contiguous()
        of_positive = torch.empty_like(thresholds)
        beyond = upright(*self.apart.shape, dtype=self.apart.dtype)
        for at, threshold in enumerate(thresholds):
            out = beyond if at else self.slopes
            torch.lt(self.apart, threshold.unsqueeze(1), out=out)
            torch.sum(out, 1, out=of_positive[at])
            if at:
                self.slopes.add_(beyond)
        self.slopes.neg_()
        self.of_positive = of_positive.t()


class _OfBlock(Triplets):
    """Those of a block of a sorted batch against all of it."""

    def __init__(self, rows: SortedRows, block: Block, values: Tensor, margin: float, inverted: bool) -> None:
        super().__init__(values, inverted)
        self.rows, self.block = rows, block
        self.apart.diagonal(block.start).fill_(-FAR)
        within = rows.within(self.apart, block, 0)
        near = self._gathered() if within is None else within.reshape(-1, rows.alike)
        near = near + margin
        rows.put(2 * FAR, self.apart, block, 0)
        self.count(near, none=1)  # the row itself

    def _gathered(self) -> Tensor:
        """How far apart the rows of each anchor's class are, (b, m), -FAR of none."""
        here = slice(self.block.start, self.block.stop)
        number = torch.arange(max(self.rows.counts[of] for of in self.rows.classes_of(self.block)))
        self.columns = (self.rows.starts[here].unsqueeze(1) + number).clamp_(max=len(self.rows) - 1)
        near = self.apart.gather(1, self.columns)
        return near.masked_fill_(number >= self.rows.sizes[here].unsqueeze(1), -FAR)

    def slope(self) -> Tensor:
        """The derivative of the sum by each distance, (b, N)."""
        within = self.rows.within(self.slopes, self.block, 0)
        if within is None:
            return self.slopes.scatter_add_(1, self.columns, self.of_positive)
        within.copy_(self.of_positive.reshape(within.shape))
        return self.slopes
