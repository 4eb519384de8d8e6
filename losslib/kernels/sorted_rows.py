"""A batch sorted by label, worked on in blocks of rows that stay in the processor's cache.

In sorted order the rows of a block's classes lie in one band of columns and everything else is negative, so
that masks are made for the band alone. The matrix of a batch with itself is symmetric: a block takes only the
columns from its own first row on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.kernels.positives import Positives, groups
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import lease, take

BLOCK = 160  # rows; buffers of so many rows were the quickest from 1024 to 4096 columns
_MOST = 256
_FEW = 8  # classes of a block up to which filling the part of each is quicker than a mask
_CACHE = 3 << 16  # entries of a buffer: with fewer columns a block has more rows, and there are fewer blocks


class Block(NamedTuple):
    """Rows start..stop, whose classes lie in the columns low..high."""

    start: int
    stop: int
    low: int
    high: int


class SortedRows:
    """Rows (N, D) of a batch in the order of their labels."""

    def __init__(self, x: Tensor, labels: Tensor, distance: Distance) -> None:
        labels, self.order = labels.to(torch.int64).sort(stable=True)
        out = take(*x.shape, dtype=x.dtype)
        self.rows = Rows(torch.index_select(x, 0, self.order, out=out), distance)
        _, self.classes, sizes = torch.unique_consecutive(labels, return_inverse=True, return_counts=True)
        self.counts: list[int] = sizes.tolist()
        self.stops = list(accumulate(self.counts))
        self.alike = self.counts[0] if min(self.counts) == max(self.counts) else 0  # rows of every class
        self._sizes = sizes
        self.block_rows = self.evenly(min(_MOST, max(BLOCK, _CACHE // max(len(x), 1))))

    def __len__(self) -> int:
        return self.stops[-1]

    @cached_property
    def number(self) -> Tensor:
        """Each row's class, in the rows' dtype."""
        return self.classes.to(self.rows.given.dtype)  # exact below 2^24 classes

    @cached_property
    def sizes(self) -> Tensor:
        """The number of rows of each row's class, in the rows' dtype."""
        return self._sizes.to(self.rows.given.dtype).index_select(0, self.classes)

    @property
    def size(self) -> Tensor | float:
        """The same, one number where all classes are of one size."""
        return float(self.alike) if self.alike else self.sizes

    @property
    def pairs(self) -> float:
        """Ordered positive pairs of the batch."""
        return float(sum(count * (count - 1) for count in self.counts))

    @cached_property
    def starts(self) -> Tensor:
        """Where each row's class starts."""
        return (self._sizes.cumsum(0) - self._sizes).index_select(0, self.classes)

    def evenly(self, most: int) -> int:
        """Rows of a block, at most so many: blocks about as large, of whole classes where these fit."""
        each = self.alike if 0 < self.alike <= most else 1
        return each * even(len(self) // each, most // each)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """The blocks, in order."""
        count = len(self)
        rows = self.block_rows if rows is None else rows
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            first, last = bisect_right(self.stops, start), bisect_right(self.stops, stop - 1)
            yield Block(start, stop, self.stops[first] - self.counts[first], self.stops[last])

    def positives(self) -> Iterator[Positives]:
        """All positive pairs, some classes at a time."""
        return groups(self)

    def classes_of(self, block: Block) -> range:
        """The classes that rows of a block belong to."""
        return range(bisect_right(self.stops, block.start), bisect_right(self.stops, block.stop - 1) + 1)

    def put(self, number: float, values: Tensor, block: Block, first: int) -> None:
        """Put 0, or a number far off, where a row and a column are of one class.

        values: (b, w), of the block's rows and the columns from `first` on.
        """
        within = self.within(values, block, first)
        if within is not None:
            within.fill_(number)
            return
        classes = self.classes_of(block)
        if len(classes) <= _FEW:
            for stop, count in zip(
                self.stops[classes.start : classes.stop], self.counts[classes.start :], strict=False
            ):
                rows = slice(max(stop - count - block.start, 0), stop - block.start)
                values[rows, max(stop - count - first, 0) : max(stop - first, 0)].fill_(number)
            return
        low, high = max(block.low, first), min(block.high, first + values.shape[1])
        if high <= low:
            return
        band = values[:, low - first : high - first]
        with lease():
            if number:
                band.add_(self.same(block, low, high), alpha=number)
            else:
                band.mul_(self.different(block, low, high))

    def within(self, values: Tensor, block: Block, first: int) -> Tensor | None:
        """Where rows and columns are of one class, (k, m, m); None unless a block has whole ones of one size.

        values: as in `put`.
        """
        size = self.alike
        if not size or block.start % size or block.stop % size or block.start < first:
            return None
        down, across = values.stride()
        place = values.storage_offset() + (block.start - first) * across
        shape = ((block.stop - block.start) // size, size, size)
        return values.as_strided(shape, (size * (down + across), down, across), place)

    def same(self, block: Block, low: int, high: int) -> Tensor:
        """1 where a row of the block and a column low..high are of one class, (b, high - low)."""
        own = self.number[block.start : block.stop].unsqueeze(1)
        out = take(block.stop - block.start, high - low, dtype=own.dtype)
        return torch.eq(own, self.number[low:high], out=out)

    def different(self, block: Block, low: int, high: int) -> Tensor:
        """1 where they are of different classes."""
        own = self.number[block.start : block.stop].unsqueeze(1)
        out = take(block.stop - block.start, high - low, dtype=own.dtype)
        return torch.ne(own, self.number[low:high], out=out)

    def class_sums(self, values: Tensor, out: Tensor) -> Tensor:
        """The sum over each row's class, of values (N, D), into `out`."""
        if min(self.counts) == max(self.counts):
            sums = values.view(len(self.counts), -1, values.shape[1]).sum(1, keepdim=True)
            out.view(len(self.counts), -1, values.shape[1]).copy_(sums)
            return out
        sums = values.new_zeros(len(self.counts), values.shape[1]).index_add_(0, self.classes, values)
        return torch.index_select(sums, 0, self.classes, out=out)

    def back(self, grad: Tensor, times: float = 1.0) -> Tensor:
        """The gradient by the embeddings, in the batch's order: that by the sorted rows times a number."""
        return self.rows.back(grad, times).index_select(0, inverse(self.order))


def inverse(order: Tensor) -> Tensor:
    """Where each row of an order has gone."""
    return torch.empty_like(order).index_copy_(0, order, torch.arange(len(order), device=order.device))


def even(count: int, most: int) -> int:
    """Rows of a block, no more than so many and all blocks about as large."""
    number = -(-count // most)
    return max(-(-count // max(number, 1)), 1)
