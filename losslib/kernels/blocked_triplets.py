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
from losslib.reducers import AvgNonZeroReducer, SumReducer


def triplets(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """TripletMarginLoss."""
    assert batch.labels is not None
    rows = SortedRows(x, batch.labels, loss.distance)
    blocks = DistanceBlocks(rows, loss.distance, False, min(_ROWS, len(rows)))
    total, active = 0.0, 0.0
    for block in rows.blocks(_ROWS):
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
    pulled = blocks.pulled(-each if blocks.inverted else each)
    return Found(value, None if pulled is None else rows.back(pulled))


def _each(loss: Any, rows: SortedRows, active: float) -> float:
    kind = type(loss.reducer)
    if kind is SumReducer:
        return 1.0
    if kind is AvgNonZeroReducer:
        return 1 / max(active, 1.0)
    sizes = rows.sizes.double()
    return 1 / max(float(((sizes - 1) * (len(rows) - sizes)).sum()), 1.0)


_ROWS = 256  # of a block
_AT_A_TIME = 1 << 16  # entries searched at a time
_FEW = 24  # thresholds up to which comparing with each is quicker than a search
_PIVOTS = 8  # parts that a search begins with, by comparing with the thresholds between them


class _Part:
    """The triplets of a block of anchors."""

    def __init__(self, rows: SortedRows, block: Block, separation: Tensor, margin: float) -> None:
        place = slice(block.start, block.stop)
        ends, sizes = rows.ends[place].unsqueeze(1), rows.sizes[place].unsqueeze(1)
        largest = int(rows.sizes[place].max()) - 1
        depth = largest.bit_length()
        self.few = largest <= _FEW
        self.width = max(largest, 1) if self.few else 2**depth - 1  # thresholds of a row
        number = torch.arange(self.width, device=sizes.device)
        own = torch.arange(block.start, block.stop, device=sizes.device).unsqueeze(1)
        columns = ends - sizes.to(torch.int64) + number
        columns += columns >= own  # the class without the anchor
        missing = number >= sizes - 1  # their thresholds lie below everything
        self.columns = columns.clamp_(max=len(rows) - 1)
        near = separation.gather(1, self.columns).masked_fill_(missing, -FAR)
        farthest = near.amax(1, keepdim=True)
        farthest = torch.where(farthest == -FAR, 0.0, farthest)
        # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
        self.thresholds = near.sub_(farthest).add_(margin).masked_fill_(missing, -FAR)
        self.apart = torch.sub(separation, farthest, out=take(*separation.shape, dtype=near.dtype))
        self.apart[:, block.low : block.high].add_(rows.same(block, block.low, block.high), alpha=FAR)
        self.of_negative = take(*self.apart.shape, dtype=near.dtype)
        if self.few:
            self._compare()
        else:
            self.thresholds, order = self.thresholds.sort(1)
            self.columns = self.columns.gather(1, order)
            self._search(depth)
        self.active = float(self.of_positive.sum(1).double().sum())
        by_row = (self.of_positive * self.thresholds).sum(1) - (self.of_negative * self.apart).sum(1)
        self.total = float(by_row.double().sum())

    def _compare(self) -> None:
        """Fill in the counts by comparing with every threshold."""
        of_positive = self.apart.new_empty(self.width, len(self.apart))
        beyond = take(*self.apart.shape, dtype=self.apart.dtype)
        for at in range(self.width):
            out = beyond if at else self.of_negative
            torch.lt(self.apart, self.thresholds[:, at : at + 1], out=out)
            torch.sum(out, 1, out=of_positive[at])
            if at:
                self.of_negative.add_(beyond)
        self.of_positive = of_positive.t()

    def _search(self, depth: int) -> None:
        """Fill in the counts, a few rows at a time, so that the indices stay in the cache."""
        apart = self.apart
        rows, columns = apart.shape
        step = min(max(1, _AT_A_TIME // columns), rows)
        places = torch.zeros(rows, self.width + 1, dtype=apart.dtype, device=apart.device)
        index = take(step, columns, dtype=torch.int64)
        reached = take(step, columns, dtype=apart.dtype)
        ones = take(step, columns, dtype=apart.dtype).fill_(1)
        for first in range(0, rows, step):
            part = slice(first, min(first + step, rows))
            at, found, size = apart[part], self.of_negative[part], part.stop - first
            thresholds, place, level = self.thresholds[part], index[:size], reached[:size]
            left = self._begin(at, found, thresholds, level, depth)
            for power in reversed(range(left)):
                torch.gather(thresholds[:, (1 << power) - 1 :], 1, place.copy_(found), out=level)
                found.add_(torch.ge(at, level, out=level), alpha=1 << power)
            places[part].scatter_add_(1, place.copy_(found), ones[:size])
        self.of_positive = places.cumsum_(1)[:, : self.width]
        self.of_negative.neg_().add_(self.width)  # from thresholds reached to thresholds beyond

    @staticmethod
    def _begin(at: Tensor, found: Tensor, thresholds: Tensor, level: Tensor, depth: int) -> int:
        """The thresholds reached up to whole parts of them; the number of halvings left within a part."""
        size = (1 << depth) // _PIVOTS
        for pivot in range(size - 1, thresholds.shape[1], size):
            out = found if pivot == size - 1 else level
            torch.ge(at, thresholds[:, pivot : pivot + 1], out=out)
            if out is level:
                found.add_(level)
        found.mul_(size)
        return size.bit_length() - 1

    def slope(self) -> Tensor:
        """The derivative of the sum by each distance, (b, N)."""
        return self.of_negative.neg_().scatter_add_(1, self.columns, self.of_positive)
