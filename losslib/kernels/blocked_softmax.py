"""Softmax losses in blocks, on cosines: the sums over all columns, then the positives' band, then the pulls.

The exponentials are taken off what keeps the matrix symmetric, so that one block serves its rows and its
columns. Where logits span no more than `SPAN` that is a constant. Steeper ones are measured first: off half
the largest logit of their row and half that of their column no exponent is above 0, and as long as those of
all rows are near enough to each other a row's own largest is an ordinary number. Up to `STORED` rows the
exponentials are kept for the pulls, above they are computed again, in memory linear in the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.blocks import FAR
from losslib.kernels.positives import Positives
from losslib.kernels.rows import centre_of_near
from losslib.kernels.scratch import constant, lease, take
from losslib.kernels.sorted_rows import Block, SortedRows

SPAN = 85.0  # exponents from 0 down to -85 are ordinary numbers in single precision, and quick
REACH = 640.0  # span of logits above which their rows are seldom near enough to each other
STORED = 4096
_WIDE = 4096  # columns of a tile
_LOWEST = {torch.float32: -70.0, torch.float64: -120.0}  # exponents off half the largest of two rows
_NEAR = 1.2  # between the largest of the rows, as a part of that: an entry at the end is nothing in its row
_LIFT_OF_PULLS = 2.0**50  # the least weights times it are ordinary numbers, and the largest have an end
_NOTHING = 1e-34  # weights that would pull by subnormal numbers


def out_of_reach(span: float, rows: int) -> str:
    """Why blocks that serve rows and columns do not take logits of this span, "" where they do."""
    if span > REACH:
        return f"its logits span {span:.3g}, more than {REACH:g}"
    if span > SPAN and rows > STORED:
        return f"its logits span {span:.3g}, and blocks keep more than {SPAN:g} for up to {STORED:,} rows"
    return ""


class UnevenError(Exception):
    """The largest logits of the rows are too far apart for blocks that serve rows and columns."""


class Softmax:
    """Sums of exponentials over the negatives of each row, or over all other rows, and what they pull.

    scale: of the similarities in the logits.
    less: what is taken off all logits; once they are measured a number for each row, (N,).
    span: how far apart the logits may be.
    with_positives: whether the sums are over all other rows.
    """

    def __init__(
        self,
        loss: Any,
        x: Tensor,
        batch: Batch,
        scale: float,
        less: float,
        span: float,
        with_positives: bool = False,
    ) -> None:
        assert batch.labels is not None
        self.sorted = SortedRows(x, batch.labels, loss.distance)
        self.rows, self.with_positives = self.sorted.rows.unit, with_positives
        self.scale, self.steep = scale, span > SPAN
        self.lift = _LIFT_OF_PULLS if self.steep else 1.0  # for what pulls are to be multiplied by
        self.less: Tensor | float = less
        self.lower = 0.0 if self.steep else less  # what the logits are lower by from the start
        self.count = len(self.sorted)
        self.kept: list[Tensor] | None = [] if self.count <= STORED else None
        assert not out_of_reach(span, self.count)
        self.pulling = self._about_centre()
        self.pulls = take(*self.pulling.shape, dtype=x.dtype).zero_()
        self.block_rows = self.sorted.block_rows if self.kept is not None else 256
        self._spare: Tensor | None = None
        self.buffer = take(self.block_rows * min(self.count, _WIDE), dtype=x.dtype)

    def _about_centre(self) -> Tensor:
        """The rows that pull: as they are, or near ones about their centre, with a 1 for sums of weights."""
        middle = centre_of_near(self.rows)
        if middle is None:
            return self.rows
        return torch.cat((self.rows - middle, self.rows.new_ones(self.count, 1)), 1)

    def _values(self, rows: Tensor, columns: Tensor, out: Tensor) -> Tensor:
        """What logits and slopes of rows (b, D) and columns (D, w) come from, (b, w)."""
        return torch.addmm(constant(-self.lower, rows), rows, columns, alpha=self.scale, out=out)

    def _logits(self, values: Tensor) -> Tensor:
        """The logits less `lower`, in the values' place or, if these are needed again, the spare buffer."""
        return values

    def _slopes(self, values: Tensor, share: Tensor) -> Tensor:
        """The exponentials times the derivative of the logits but for a constant; in the values' place."""
        return share

    def sums(self, wanted: bool) -> Tensor:
        """The sum of the exponentials of each row, (N,), which are off `less`."""
        totals = self.rows.new_zeros(self.count)
        if self.steep:
            self._measure()
        elif not wanted:
            self.kept = None  # nothing is pulled
        for place, (block, first, last) in enumerate(self._tiles()):
            values = self._tile(block, first, last, place)
            share = self._exponentials(values, block, first, last)
            self._add(totals, share, block, first, last)
            values = self._slopes(values, share)
            if self.kept is not None and not self.steep:
                self.kept.append(values)
        return totals.div_(self.roots) if self.steep else totals

    def _add(self, totals: Tensor, share: Tensor, block: Block, first: int, last: int) -> None:
        """Add a tile's exponentials to the sums of its rows and columns."""
        beyond = max(block.stop - first, 0)
        own, others = totals[block.start : block.stop], totals[first + beyond : last]
        if not self.steep:
            own.add_(share.sum(1))
            others.add_(share[:, beyond:].sum(0))
            return
        own.addmv_(share, self.roots[first:last])
        others.addmv_(share[:, beyond:].t(), self.roots[block.start : block.stop])

    def _measure(self) -> None:
        """Keep all tiles, and find the largest logit of each row. Raises UnevenError."""
        assert self.kept is not None
        largest = self.rows.new_full((self.count,), -FAR)
        for block, first, last in self._tiles():
            values = self._tile(block, first, last)
            self.kept.append(values)
            logits = self._logits(values)
            self._put(-FAR, logits, block, first)
            beyond = max(block.stop - first, 0)
            for part, most in (
                (largest[block.start : block.stop], logits.amax(1)),
                (largest[first + beyond : last], logits[:, beyond:].amax(0)),
            ):
                torch.maximum(part, most, out=part)
        some = largest > -FAR / 2
        low, high = torch.where(some, largest, FAR).amin().item(), largest.amax().item()
        if high - low > -_LOWEST[self.rows.dtype] * _NEAR:
            raise UnevenError
        middle = (low + high) / 2 if low < FAR else 0.0
        self.less = torch.where(some, largest, middle)
        self.halves = self.less / 2
        self.roots = (self.halves - middle / 2).exp_()  # of what rows are larger by than the middle

    def spare(self, rows: int, columns: int) -> Tensor:
        """A buffer of this size, the same at every call."""
        if self._spare is None:
            self._spare = (
                self.buffer if self.kept is not None else take(len(self.buffer), dtype=self.rows.dtype)
            )
        return self._spare[: rows * columns].view(rows, columns)

    def pull(self, coefficient: Tensor) -> None:
        """Add the pulls of sum over j of E_ij (a_i + a_j) x_j, with a coefficient (N,) for each row.

        E off the `less` of a_i's row in its place, of a_j's in the other.
        """
        if self.steep:
            coefficient = coefficient / self.roots
        for place, (block, first, last) in enumerate(self._tiles()):
            values = self._tile(block, first, last, place)
            if self.kept is None:
                values = self._slopes(values, self._exponentials(values, block, first, last))
            own, others = coefficient[block.start : block.stop].unsqueeze(1), coefficient[first:last]
            weight = self.spare(*values.shape)
            if self.steep:
                torch.mul(own, self.roots[first:last], out=weight)
                weight.addcmul_(self.roots[block.start : block.stop].unsqueeze(1), others).mul_(values)
                torch.ops.aten.hardshrink.out(weight, _NOTHING, out=weight)
            else:
                torch.add(own, others, out=weight).mul_(values)
            self.pulls[block.start : block.stop].addmm_(weight, self.pulling[first:last])
            beyond = max(block.stop - first, 0)
            if last > first + beyond:
                own_rows = self.pulling[block.start : block.stop]
                self.pulls[first + beyond : last].addmm_(weight[:, beyond:].t(), own_rows)

    def _tiles(self) -> Iterator[tuple[Block, int, int]]:
        """Blocks of rows with columns first..last, from the block's first row on."""
        count = self.count
        for block in self.sorted.blocks(self.block_rows):
            for first in range(block.start, count, _WIDE):
                # the block's own columns must not be cut in two
                yield block, first, min(first + _WIDE, count)

    def _tile(self, block: Block, first: int, last: int, place: int | None = None) -> Tensor:
        """The kept tile of this place, or the values of a new one."""
        if self.kept is not None and place is not None and place < len(self.kept):
            return self.kept[place]
        height, width = block.stop - block.start, last - first
        if self.kept is not None:
            out = take(height, width, dtype=self.rows.dtype)
        else:
            out = self.buffer[: height * width].view(height, width)
        return self._values(self.rows[block.start : block.stop], self.rows[first:last].t(), out)

    def _exponentials(self, values: Tensor, block: Block, first: int, last: int) -> Tensor:
        logits = self._logits(values)
        if self.steep:
            logits.sub_(self.halves[block.start : block.stop].unsqueeze(1)).sub_(self.halves[first:last])
            logits.clamp_(_LOWEST[logits.dtype], 0.0)
        self._put(0.0, logits.exp_(), block, first)
        return logits

    def _put(self, number: float, values: Tensor, block: Block, first: int) -> None:
        """Put a number where a row and a column have no part in the sums."""
        if not self.with_positives:
            self.sorted.put(number, values, block, first)
        elif first == block.start:
            values.fill_diagonal_(number)  # which lies at the left

    def positives(self) -> Iterator[Positives]:
        """The positive pairs, some classes at a time."""
        return self.sorted.positives()

    def pull_pairs(self, some: Positives, slope: Tensor) -> None:
        """Add the pulls of a slope (k, r, m) of positive pairs, by their anchors alone, on both rows."""
        some.pull(self.pulls, self.pulling, slope)

    def _class_sums(self, rows: Tensor) -> Tensor:
        """The sum of each row's class, (N, D)."""
        return self.sorted.class_sums(rows, take(*rows.shape, dtype=rows.dtype))

    @cached_property
    def _pulling_sums(self) -> Tensor:
        return self._class_sums(self.pulling)

    def pull_positives(self, weight: Tensor | float) -> None:
        """Add minus the pulls of sum over positives j of (b_i + b_j) x_j, with weights (N,) or one for all.

        And some of each row's own direction, which the way back through the norm takes off.
        """
        if not isinstance(weight, Tensor):
            self.pulls.sub_(self._pulling_sums, alpha=2 * weight)
            return
        column, rows = weight.unsqueeze(1), self.pulling
        self.pulls.addcmul_(self._pulling_sums, column, value=-1)
        with lease():
            weighted = torch.mul(rows, column, out=take(*rows.shape, dtype=rows.dtype))
            self.pulls.sub_(self._class_sums(weighted))

    def positives_sum(self) -> Tensor:
        """The sum of each row's similarities to its positives, (N,), in double precision."""
        rows = self.rows
        sums = self._pulling_sums if self.pulling is rows else self._class_sums(rows)
        with lease():
            others = torch.sub(sums, rows, out=take(*rows.shape, dtype=rows.dtype))
            return others.mul_(rows).sum(1).double()

    def gradient(self, times: float = 1.0) -> Tensor:
        """The gradient by the embeddings: the pulls times a number."""
        pulls = self.pulls
        if self.pulling is not self.rows:  # less each row's own direction, times the sum of its weights
            pulls = torch.addcmul(pulls[:, :-1], self.pulling[:, :-1], pulls[:, -1:], value=-1)
        return self.sorted.back(pulls, times)
