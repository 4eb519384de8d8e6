"""The positive pairs of a sorted batch, classes of about one size at a time.

Beside the whole matrix they are few. Taken class by class, and not in bands of a block's columns, they need
neither masks of a whole band nor its products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from losslib.kernels.scratch import constant, take

if TYPE_CHECKING:
    from losslib.kernels.sorted_rows import SortedRows

_ENTRIES = 1 << 16  # pairs at a time, which stay in the cache
_LEAST = 64  # anchors at a time of a large class

Place: TypeAlias = slice | Tensor  # of rows in sorted order, side by side or not


class Positives:
    """k classes, r anchors of each (all, or those from `first` on) against its m rows.

    Smaller classes among them are filled up with other rows, whose pairs are masked.
    """

    def __init__(self, rows: SortedRows, classes: list[int], first: int, last: int) -> None:
        counts = [rows.counts[number] for number in classes]
        self.first, self.width, self.height = first, max(counts), last - first
        self.shape = (len(classes), self.height, self.width)
        self.square = self.height == self.width
        self._present: Tensor | None = None
        self.own: Place
        self.all: Place
        starts = [rows.stops[number] - rows.counts[number] for number in classes]
        if min(counts) == self.width and classes[-1] - classes[0] == len(classes) - 1:
            start, stop = starts[0], rows.stops[classes[-1]]
            self.all = slice(start, stop)
            self.own = self.all if self.square else slice(start + first, start + last)
        else:
            number = torch.arange(self.width)
            places = torch.tensor(starts).unsqueeze(1) + number
            self._present = torch.lt(number, torch.tensor(counts).unsqueeze(1)).to(rows.rows.given.dtype)
            self.own = self.all = places.clamp_(max=len(rows) - 1).flatten()

    def anchors(self, values: Tensor) -> Tensor:
        """The anchors' part of values (N, ...), as (k, r, ...)."""
        return self._part(values, self.own, self.height)

    def everyone(self, values: Tensor) -> Tensor:
        """The part of all rows of the classes, (k, m, ...)."""
        return self._part(values, self.all, self.width)

    def _part(self, values: Tensor, place: Place, rows: int) -> Tensor:
        part = values[place] if isinstance(place, slice) else values.index_select(0, place)
        return part.view(self.shape[0], rows, *values.shape[1:])

    def products(self, rows: Tensor, scale: float = 1.0, offset: float = 0.0) -> Tensor:
        """scale * s + offset of the products s of the anchors with all rows, (k, r, m)."""
        everyone = self.everyone(rows)
        own = everyone if self.square else self.anchors(rows)
        out = take(*self.shape, dtype=rows.dtype)
        return torch.baddbmm(constant(offset, rows), own, everyone.mT, alpha=scale, out=out)

    def mask(self, like: Tensor) -> Tensor:
        """1 for a pair and 0 for a row with itself or one that is not there; (k, r, m) or (1, r, m)."""
        mask = like.new_ones(1, self.height, self.width)
        mask.diagonal(self.first, 1, 2).zero_()
        if self._present is not None:
            mask = mask * self._present.unsqueeze(2)
            mask.mul_(self._present.unsqueeze(1))
        return mask

    def means(self, rows: Tensor) -> Tensor:
        """The mean row of each class, (k, 1, D)."""
        if self._present is None:
            return self.everyone(rows).sum(1, keepdim=True).div_(self.width)
        present = self._present.to(rows.dtype).unsqueeze(1)
        return torch.bmm(present, self.everyone(rows)).div_(present.sum(2, keepdim=True))

    def add(self, to: Tensor, values: Tensor) -> None:
        """Add values (k, r, ...) of the anchors to their places in (N, ...)."""
        if isinstance(self.own, slice):
            to[self.own].add_(values.view(-1, *values.shape[2:]))
        else:
            to.index_add_(0, self.own, values.flatten(0, 1))

    def add_product(self, to: Tensor, weight: Tensor, everyone: Tensor) -> None:
        """Add weights (k, r, m) times the rows of the classes (k, m, D) to the anchors' places in (N, D)."""
        self._add_product(to, self.own, self.height, weight, everyone)

    def pull(self, pulls: Tensor, rows: Tensor, weight: Tensor) -> None:
        """Add what weights (k, r, m) of the anchors' pairs pull on both rows of each pair."""
        everyone = self.everyone(rows)
        if self.square:
            self._add_product(pulls, self.own, self.height, weight + weight.mT, everyone)
            return
        self._add_product(pulls, self.own, self.height, weight, everyone)
        self._add_product(pulls, self.all, self.width, weight.mT, self.anchors(rows))

    def _add_product(self, to: Tensor, place: Place, height: int, weight: Tensor, rows: Tensor) -> None:
        if isinstance(place, slice):
            to[place].view(self.shape[0], height, -1).baddbmm_(weight, rows)
        else:
            to.index_add_(0, place, torch.bmm(weight, rows).flatten(0, 1))


def groups(rows: SortedRows) -> Iterator[Positives]:
    """All positive pairs of a batch, every pair in both orders."""
    least, largest = min(rows.counts), max(rows.counts)
    every = list(range(len(rows.counts)))
    alike = [every] if least == largest else of_about_one_size(rows.counts)
    for classes in alike:
        together = max(1, _ENTRIES // rows.counts[classes[0]] ** 2)
        for at in range(0, len(classes), together):
            part = classes[at : at + together]
            width = rows.counts[part[0]]  # the largest
            height = min(width, max(_LEAST, _ENTRIES // width))
            for first in range(0, width if width > 1 else 0, height):
                yield Positives(rows, part, first, min(first + height, width))


def of_about_one_size(counts: list[int]) -> list[list[int]]:
    """The classes, largest first, in lists of which none is much smaller than the first."""
    found: list[list[int]] = []
    for number in sorted(range(len(counts)), key=counts.__getitem__, reverse=True):
        if found and 4 * counts[number] > 3 * counts[found[-1][0]]:
            found[-1].append(number)
        else:
            found.append([number])
    return found
