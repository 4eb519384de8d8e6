"""A batch sorted by label, worked on in blocks of rows that stay in the processor's cache.

In sorted order the positives of a block of rows lie in one band of columns and everything else is negative,
so that masks are made for the band alone. The matrix of a batch with itself is symmetric: a block takes only
the columns from its own first row on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import take

BLOCK = 128  # rows; buffers of that many rows were the quickest from 512 to 4096 columns


class Block(NamedTuple):
    """Rows start..stop, whose positives lie in the columns low..high."""

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
        changes = torch.zeros_like(labels)
        torch.ne(labels[1:], labels[:-1], out=changes[1:])
        self.classes = changes.cumsum(0)
        sizes = torch.bincount(self.classes)
        self.ends = sizes.cumsum(0)[self.classes]
        self.sizes = sizes[self.classes].to(x.dtype)  # of each row's class
        self.number = self.classes.to(x.dtype)  # exact below 2^24 classes
        self._ends: list[int] = self.ends.tolist()
        self._starts: list[int] = (self.ends - sizes[self.classes]).tolist()
        self.classes_number = len(sizes)

    def __len__(self) -> int:
        return len(self._ends)

    def blocks(self, rows: int = BLOCK) -> Iterator[Block]:
        """The blocks, in order."""
        count = len(self)
        for start in range(0, count, rows):
            stop = min(start + rows, count)
            yield Block(start, stop, self._starts[start], self._ends[stop - 1])

    def same(self, block: Block, low: int, high: int) -> Tensor:
        """1 where a row of the block and a column low..high are of one class, (b, high - low)."""
        own = self.number[block.start : block.stop].unsqueeze(1)
        return torch.eq(own, self.number[low:high], out=own.new_empty(len(own), high - low))

    def different(self, block: Block, low: int, high: int) -> Tensor:
        """1 where they are of different classes."""
        own = self.number[block.start : block.stop].unsqueeze(1)
        return torch.ne(own, self.number[low:high], out=own.new_empty(len(own), high - low))

    def others(self, values: Tensor, out: Tensor) -> Tensor:
        """The sum over the other rows of each row's class, of values (N, D), into `out`."""
        sums = values.new_zeros(self.classes_number, values.shape[1]).index_add_(0, self.classes, values)
        return torch.index_select(sums, 0, self.classes, out=out).sub_(values)

    def back(self, grad: Tensor) -> Tensor:
        """The gradient by the embeddings, in the batch's order, from that by the sorted rows."""
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(len(place), device=place.device)
        return self.rows.back(grad).index_select(0, place)
