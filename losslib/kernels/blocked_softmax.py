"""Softmax losses in blocks, on cosines: the sums over all columns, then the positives' band, then the pulls.

The exponentials are taken off one constant, the largest that they can be, so that the matrix stays symmetric:
one block serves its rows and its columns. That is safe while logits span no more than `SPAN`. Up to `STORED`
rows the exponentials are kept for the pulls, above they are computed again, in memory linear in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.positives import Positives
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import Block, SortedRows

SPAN = 85.0  # exponents from 0 down to -85 are ordinary numbers in single precision, and quick
STORED = 4096
_WIDE = 4096  # columns of a tile

Exponentials = Callable[[Tensor, Tensor, Tensor], Tensor | None]


class Softmax:
    """Sums of exponentials over the negatives of each row, or over all other rows, and what they pull.

    of: fills its last argument (b, w) with exponentials, of rows (b, D) and columns (D, w), and returns what
        they are multiplied by after being summed.
    with_positives: whether the sums are over all other rows.
    """

    def __init__(self, loss: Any, x: Tensor, batch: Batch, of: Exponentials, with_positives: bool) -> None:
        assert batch.labels is not None
        self.sorted = SortedRows(x, batch.labels, loss.distance)
        self.rows, self.of, self.with_positives = self.sorted.rows.unit, of, with_positives
        self.count = len(self.sorted)
        self.kept: list[Tensor] | None = [] if self.count <= STORED else None
        self.pulls = take(*self.rows.shape, dtype=x.dtype).zero_()
        self.block_rows = self.sorted.block_rows if self.kept is not None else 256
        self._spare: Tensor | None = None
        self._sums: Tensor | None = None
        self.buffer = take(self.block_rows * min(self.count, _WIDE), dtype=x.dtype)

    def sums(self, wanted: bool) -> Tensor:
        """The sum of the exponentials of each row, (N,)."""
        totals = self.rows.new_zeros(self.count)
        if not wanted:
            self.kept = None  # nothing is pulled
        for block, first, last in self._tiles():
            tile, after = self._exponentials(block, first, last, self.kept is not None)
            totals[block.start : block.stop].add_(tile.sum(1))
            beyond = max(block.stop - first, 0)
            if last > first + beyond:
                totals[first + beyond : last].add_(tile[:, beyond:].sum(0))
            if self.kept is not None:
                self.kept.append(tile if after is None else tile.mul_(after))
        return totals

    def spare(self, rows: int, columns: int) -> Tensor:
        """A buffer of this size, the same at every call."""
        if self._spare is None:
            self._spare = (
                self.buffer if self.kept is not None else take(len(self.buffer), dtype=self.rows.dtype)
            )
        return self._spare[: rows * columns].view(rows, columns)

    def pull(self, coefficient: Tensor) -> None:
        """Add the pulls of sum over j of E_ij (a_i + a_j) x_j, with a coefficient (N,) for each row."""
        for place, (block, first, last) in enumerate(self._tiles()):
            if self.kept is not None:
                tile = self.kept[place]
            else:
                tile, after = self._exponentials(block, first, last, False)
                tile = tile if after is None else tile.mul_(after)
            own = coefficient[block.start : block.stop].unsqueeze(1)
            weight = torch.add(own, coefficient[first:last], out=self.spare(*tile.shape)).mul_(tile)
            self.pulls[block.start : block.stop].addmm_(weight, self.rows[first:last])
            beyond = max(block.stop - first, 0)
            if last > first + beyond:
                own_rows = self.rows[block.start : block.stop]
                self.pulls[first + beyond : last].addmm_(weight[:, beyond:].t(), own_rows)

    def _tiles(self) -> Iterator[tuple[Block, int, int]]:
        """Blocks of rows with columns first..last, from the block's first row on."""
        count = self.count
        for block in self.sorted.blocks(self.block_rows):
            for first in range(block.start, count, _WIDE):
                # the block's own columns must not be cut in two
                yield block, first, min(first + _WIDE, count)

    def _exponentials(self, block: Block, first: int, last: int, keep: bool) -> tuple[Tensor, Tensor | None]:
        own, others = self.rows[block.start : block.stop], self.rows[first:last]
        height, width = block.stop - block.start, last - first
        if keep:
            tile = take(height, width, dtype=self.rows.dtype)
        else:
            tile = self.buffer[: height * width].view(height, width)
        after = self.of(own, others.t(), tile)
        if self.with_positives:
            if first == block.start:
                tile.fill_diagonal_(0)  # which lies at the left
        else:
            self.sorted.put(0.0, tile, block, first)
        return tile, after

    def positives(self) -> Iterator[Positives]:
        """The positive pairs, some classes at a time."""
        return self.sorted.positives()

    def pull_pairs(self, some: Positives, slope: Tensor) -> None:
        """Add the pulls of a slope (k, r, m) of positive pairs, by their anchors alone, on both rows."""
        some.pull(self.pulls, self.rows, slope)

    def _class_sums(self) -> Tensor:
        """The sum of each row's class, (N, D)."""
        if self._sums is None:
            self._sums = self.sorted.class_sums(self.rows, take(*self.rows.shape, dtype=self.rows.dtype))
        return self._sums

    def pull_positives(self, weight: Tensor) -> None:
        """Add minus the pulls of sum over positives j of (b_i + b_j) x_j, with a weight (N,) for each row.

        And some of each row's own direction, which the way back through the norm takes off.
        """
        column = weight.unsqueeze(1)
        if bool((weight == weight[0]).all()):
            self.pulls.addcmul_(self._class_sums(), column, value=-2)
            return
        self.pulls.addcmul_(self._class_sums(), column, value=-1)
        with lease():
            weighted, sums = (take(*self.rows.shape, dtype=self.rows.dtype) for _ in range(2))
            self.pulls.sub_(self.sorted.class_sums(torch.mul(self.rows, column, out=weighted), sums))

    def positives_sum(self) -> Tensor:
        """The sum of each row's similarities to its positives, (N,), in double precision."""
        sums = self._class_sums()
        with lease():
            others = torch.sub(sums, self.rows, out=take(*self.rows.shape, dtype=self.rows.dtype))
            return others.mul_(self.rows).sum(1).double()

    def gradient(self, times: float = 1.0) -> Tensor:
        """The gradient by the embeddings: the pulls times a number."""
        return self.sorted.back(self.pulls, times)
