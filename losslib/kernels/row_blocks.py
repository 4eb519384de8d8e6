"""Blocks of whole rows of a distance matrix, between a batch and its references or itself.

For what the symmetric blocks cannot do: references as a set of their own, and rows that are each taken off
their own largest logit. Both sets are sorted by label, so that a block's positives lie in one band of columns
and everything else is negative. A block is some rows against all columns: memory linear in both sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.distances.exact import centre, roots
from losslib.inputs import Batch
from losslib.kernels.function import Inputs
from losslib.kernels.matrix import NARROW, NEAR
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import even, inverse

_LEAST, _MOST = 128, 256  # rows of a block
_ENTRIES = 1 << 19  # up to which it has more than the least
FAR = 1e30


class _Sorted:
    """Rows (N, D) sorted by label, and what pulls on them: by side, in the rows' precision or in double."""

    def __init__(self, x: Tensor, labels: Tensor, loss: Any, wanted: bool) -> None:
        self.labels, self.order = labels.to(torch.int64).sort(stable=True)
        out = take(*x.shape, dtype=x.dtype)
        self.rows = Rows(torch.index_select(x, 0, self.order, out=out), loss.distance)
        self.wanted = wanted
        self.pulls: dict[tuple[int, torch.dtype], Tensor] = {}
        self.totals: dict[int, Tensor] = {}  # of the slopes of each row
        self.middle: Tensor | None = None  # what distances of rows that are no unit rows are taken from
        self._wide: Tensor | None = None

    def __len__(self) -> int:
        return len(self.order)

    @property
    def unit(self) -> Tensor:
        """The rows in their own precision."""
        return self.rows.unit

    @property
    def wide(self) -> Tensor:
        """The rows in double precision, from the middle."""
        if self._wide is None:
            self._wide = self.rows.wide if self.middle is None else self.rows.wide - self.middle
        return self._wide

    def prepare(self, sides: int) -> None:
        """Take the memory for what lasts longer than a block: unit rows, their squares and pulls."""
        self.squares = self.rows.squares(self.unit)
        for side in range(sides if self.wanted else 0):
            self.pulls[side, self.unit.dtype] = take(*self.unit.shape, dtype=self.unit.dtype).zero_()

    def pulled(self, side: int, dtype: torch.dtype) -> Tensor:
        """The pulls (N, D) of a side, to be added to."""
        if (side, dtype) not in self.pulls:
            self.pulls[side, dtype] = torch.zeros(self.rows.given.shape, dtype=dtype)
        return self.pulls[side, dtype]

    def total(self, side: int) -> Tensor:
        """The sums (N,) of the slopes of a side, to be added to."""
        return self.totals.setdefault(side, torch.zeros(len(self), dtype=torch.float64))

    def gradient(self, factors: list[float]) -> Tensor | None:
        """The gradient by the rows in their own order: the sides' pulls times a factor each."""
        if not self.wanted:
            return None
        found: Tensor | None = None
        for (side, _), pulls in self.pulls.items():
            part = pulls.mul_(factors[side])
            found = part if found is None else found + part
        if found is None:
            return torch.zeros_like(self.rows.given)
        for side, total in self.totals.items():  # a row's own part: sum(slope) * x
            found = found.addcmul(self.wide, total.unsqueeze(1), value=-factors[side])
        return self.rows.back(found).index_select(0, inverse(self.order))


@dataclass
class Part:
    """A block of rows: its values, the band of its positives among the columns, and counts of each row.

    values: (b, R), those of own places meaningless. band: columns. same: (b, width of the band), 1 where a
    row and a column are of one class, an own place included; positive: the same without own places. own: the
    column of each row itself or its copy, (b, 1), in its class; None for references that have none.
    """

    values: Tensor
    here: slice
    band: slice
    same: Tensor
    positive: Tensor
    positives: Tensor
    negatives: Tensor
    exact: bool
    disposable: bool  # whether the values may be overwritten before the pull
    columns: int
    own: Tensor | None = None

    def without_own(self, entries: Tensor, filler: float) -> Tensor:
        """Entries (b, R), or of the band, with a filler in each row's own place."""
        if self.own is None:
            return entries
        own = self.own if entries.shape[1] == self.columns else self.own - self.band.start
        return entries.scatter_(1, own, filler)

    def band_values(self) -> Tensor:
        """The values of the band, a part of `values` or all of them."""
        alone = self.values.shape[1] == self.same.shape[1]
        return self.values if alone else self.values[:, self.band]

    def scaled(self, scale: float, offset: float = 0.0) -> Tensor:
        """scale * (values - offset), in the values' place where they are not needed any more."""
        out = self.values if self.disposable else take(*self.values.shape, dtype=self.values.dtype)
        if offset:
            return torch.sub(self.values, offset, out=out).mul_(scale)
        return torch.mul(self.values, scale, out=out)

    def near(self, scale: float, offset: float = 0.0) -> Tensor:
        """The same of the band alone, in a place of its own."""
        out = take(*self.same.shape, dtype=self.same.dtype)
        return torch.sub(self.band_values(), offset, out=out).mul_(scale)


class RowBlocks:
    """The blocks between a batch and its references, with what slopes by their values pull on both.

    sides: how many pulls are kept apart. near: whether small distances must be exact, as those of positives
    that are pulled together must; else they may be off by the rounding of unit rows' products. room: `take`
    or `upright`, for the memory of a block.
    """

    def __init__(
        self,
        loss: Any,
        given: Inputs,
        batch: Batch,
        needs: tuple[bool, ...],
        sides: int = 1,
        near: bool = True,
        room: Callable[..., Tensor] = take,
    ) -> None:
        assert batch.labels is not None
        self.inverted: bool = loss.distance.is_inverted
        self.power: float = getattr(loss.distance, "power", 1.0)
        self.x = self.y = _Sorted(given.embeddings, batch.labels, loss, needs[0])
        self.apart = given.references is not None
        if given.references is not None:
            assert batch.ref_labels is not None
            self.y = _Sorted(given.references, batch.ref_labels, loss, needs[1])
        self.dtype = given.embeddings.dtype
        self._place(batch)
        self.near, self.room = near and not self.inverted, room
        self.radial = not self.inverted and not self.x.rows.normalised
        if self.radial:  # far from the origin, products would cancel
            self.x.middle = self.y.middle = centre(self.y.rows.wide)
        narrow = self.dtype == torch.float64 or given.embeddings.shape[1] <= NARROW
        self.single = self.inverted or (self.x.rows.normalised and not (narrow and self.near))
        if self.single:
            for of in {id(of): of for of in (self.x, self.y)}.values():
                of.prepare(sides)
        most = min(_MOST, max(_LEAST, _ENTRIES // max(len(self.y), 1)))
        self.block_rows = even(len(self.x), most)

    def _place(self, batch: Batch) -> None:
        """Where each row and its class lie among the columns, and one number a class."""
        labels, others = self.x.labels, self.y.labels
        first = torch.searchsorted(others, labels)
        last = torch.searchsorted(others, labels, right=True)
        self.first, self.sizes = first, last - first
        self.number = torch.searchsorted(others, others).to(self.dtype)
        self.own_number = torch.where(self.sizes > 0, first, -1).to(self.dtype)
        self._starts, self._ends = first.tolist(), last.tolist()
        self.own: Tensor | None = None
        if not self.apart:
            self.own = torch.arange(len(labels)).unsqueeze(1)
        elif batch.own is not None:
            self.own = inverse(self.y.order)[batch.own[self.x.order]].unsqueeze(1)
        self.positives, self.negatives = self.sizes - int(self.own is not None), len(others) - self.sizes

    def parts(self, band_alone: bool = False) -> Iterator[Part]:
        """The blocks in order, each until the next is asked for; band_alone: with the band's values alone."""
        for start in range(0, len(self.x), self.block_rows):
            stop = min(start + self.block_rows, len(self.x))
            here, band = slice(start, stop), slice(self._starts[start], self._ends[stop - 1])
            band = slice(band.start, max(band.start, band.stop))
            with lease():  # of what one block needs
                columns = band if band_alone else slice(0, len(self.y))
                values, exact = self._values(here, columns)
                same = self.room(stop - start, band.stop - band.start, dtype=self.dtype)
                torch.eq(self.own_number[here].unsqueeze(1), self.number[band], out=same)
                part = Part(
                    values,
                    here,
                    band,
                    same,
                    same,
                    self.positives[here].to(self.dtype),
                    self.negatives[here].to(self.dtype),
                    exact,
                    self.inverted or self.power == 2,
                    len(self.y),
                )
                if self.own is not None:
                    part.own = self.own[here]
                    part.positive = self.room(*same.shape, dtype=self.dtype).copy_(same)
                    part.without_own(part.positive, 0.0)
                yield part

    def _values(self, here: slice, columns: slice) -> tuple[Tensor, bool]:
        out = self.room(here.stop - here.start, columns.stop - columns.start, dtype=self.dtype)
        if self.inverted:
            return torch.mm(self.x.unit[here], self.y.unit[columns].t(), out=out), False
        if self.single and (found := self._in_single(here, columns, out)) is not None:
            return found, False
        self.single = False
        share = 1e-4 if self.dtype == torch.float64 else 1e-6
        exact = _distances(self.x.wide[here], self.y.wide[columns], share)
        return out.copy_(exact if self.power == 1 else exact.square_()), True

    def _in_single(self, here: slice, columns: slice, out: Tensor) -> Tensor | None:
        """By a product in the rows' own precision, or None where small distances need more."""
        own, others = self.x.unit[here], self.y.unit[columns]
        torch.addmm(self.y.squares[columns], own, others.t(), alpha=-2.0, out=out)
        out.add_(self.x.squares[here].unsqueeze(1))
        if self.own is not None:
            out.scatter_(1, self.own[here] - columns.start, 4.0)  # no pairs, and no near ones
        if self.near and out.numel() and not out.amin().item() > 2 * NEAR:
            return None
        return out.clamp_min_(0.0) if self.power == 2 else out.clamp_min_(0.0).sqrt_()

    def pull(self, part: Part, slope: Tensor, side: int = 0, band: bool = False) -> None:
        """Add what a slope (b, R) by the values pulls on both rows of each pair; overwrites both.

        band: whether the slope is by the band's values alone.
        """
        columns = part.band if band else slice(0, len(self.y))
        if not self.inverted and self.power == 1:
            values = part.band_values() if band else part.values
            slope.div_(values if not part.exact and self.near else torch.threshold(values, 0.0, torch.inf))
        dtype = torch.float64 if part.exact else self.dtype
        slope = slope.to(dtype)
        x, y = (self.x.wide, self.y.wide) if part.exact else (self.x.unit, self.y.unit)
        if self.x.wanted:
            self.x.pulled(side, dtype)[part.here].addmm_(slope, y[columns])
        if self.y.wanted:
            self.y.pulled(side, dtype)[columns].addmm_(slope.t(), x[part.here])
        if self.radial:
            self.x.total(side)[part.here].add_(slope.sum(1))
            self.y.total(side)[columns].add_(slope.sum(0))

    def gradients(self, factors: list[float]) -> tuple[Tensor | None, Tensor | None]:
        """The gradients by embeddings and references: the sides' pulls times a factor each."""
        if not self.inverted:
            factors = [-self.power * factor for factor in factors]
        return self.x.gradient(factors), self.y.gradient(factors) if self.apart else None


def _distances(own: Tensor, others: Tensor, share: float) -> Tensor:
    """Distances (b, R) by a product in double precision, those below a share of the norms by difference."""
    squares = (own * own).sum(1), (others * others).sum(1)
    squared = torch.addmm(squares[1], own, others.t(), alpha=-2.0).add_(squares[0].unsqueeze(1))
    if not squared.numel():
        return squared
    return roots(squared, share * float(squares[0].max() + squares[1].max()), own, others)
