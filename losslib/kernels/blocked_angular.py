"""AngularLoss class by class.

The sum over an anchor's negatives that a positive pair is weighed against is a product of two rows of
exponentials, those of both to the negatives. Anchor and positive are of one class, and so have the same
negatives: for m rows of a class one matrix of exponentials (m, B) and its product with itself are enough,
where all pairs of all rows would take B^3 operations and several matrices of size B x B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.function import Found
from losslib.kernels.positives import Positives, of_about_one_size
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import SortedRows
from losslib.softmax import softplus

_ENTRIES = 1 << 19  # exponentials at a time


def angular(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """AngularLoss of a batch with itself."""
    assert batch.labels is not None
    rows = SortedRows(x, batch.labels, loss.distance)
    unit = rows.rows.unit  # taken before the memory of any classes
    pulls = take(*x.shape, dtype=x.dtype).zero_() if wanted else None
    total = above = 0.0
    for some in _groups(rows):
        with lease():  # of what these need
            values = _Classes(loss, rows, unit, some).values(pulls)
            total += float(values.sum(2).sum(dtype=torch.float64))
            above += float(torch.count_nonzero(values))
    each = reduce.each(loss.reducer, rows.pairs, above)
    return Found(x.new_tensor(total * each), None if pulls is None else rows.back(pulls, each))


def _groups(rows: SortedRows) -> Iterator[Positives]:
    """All classes of two rows or more, as many of about one size at a time as their exponentials allow."""
    for classes in of_about_one_size(rows.counts):
        together = max(1, _ENTRIES // (rows.counts[classes[0]] * len(rows)))
        for at in range(0, len(classes), together):
            width = rows.counts[classes[at]]  # the largest of these
            if width > 1:
                yield Positives(rows, classes[at : at + together], 0, width)


class _Classes:
    """k classes of up to m rows each, and the exponentials between them and all rows."""

    def __init__(self, loss: Any, rows: SortedRows, unit: Tensor, some: Positives) -> None:
        self.rows, self.some, self.unit = rows, some, unit
        self.tangent = math.tan(math.radians(loss.alpha)) ** 2
        self.own = some.everyone(self.unit)  # (k, m, D)
        self.number = some.everyone(rows.number)[:, :1]  # of each class
        self.width = max(1, _ENTRIES // (some.shape[0] * some.width))
        self.kept: Tensor | None = None

    def values(self, pulls: Tensor | None) -> Tensor:
        """The values of all pairs (k, m, m), 0 of those that are no positive ones; adds what they pull."""
        sums = self.own.new_zeros(self.some.shape)
        for first, last in self._tiles():
            far = self._exponentials(first, last)
            sums.baddbmm_(far, far.mT)
        excess = self.some.products(self.unit, -2 - 2 * self.tangent).add_(sums.log())  # -inf of no negatives
        mask = self.some.mask(excess)
        values = softplus(excess).mul_(mask)
        if pulls is not None:
            chance = excess.sigmoid_().mul_(mask)
            self._pull(pulls, chance / sums.add_(sums == 0))
            self.some.pull(pulls, self.unit, chance.mul_(-2 - 2 * self.tangent))
        return values

    def _tiles(self) -> Iterator[tuple[int, int]]:
        count = len(self.rows)
        for first in range(0, count, self.width):
            yield first, min(first + self.width, count)

    def _exponentials(self, first: int, last: int) -> Tensor:
        """Between the classes' rows and the columns first..last, 0 within a class, (k, m, last - first)."""
        if self.kept is not None:
            return self.kept
        k, m, _ = self.some.shape
        out = take(k * m, last - first, dtype=self.unit.dtype)
        torch.mm(self.own.reshape(k * m, -1) * (4 * self.tangent), self.unit[first:last].t(), out=out)
        far = out.exp_().view(k, m, -1).mul_(self.number.unsqueeze(2) != self.rows.number[first:last])
        if self.width >= len(self.rows):
            self.kept = far
        return far

    def _pull(self, pulls: Tensor, weight: Tensor) -> None:
        """Add what weights (k, m, m) of the sums pull on both sides of the exponentials."""
        both, own = weight.add(weight.mT), self.own.reshape(-1, self.own.shape[2])
        for first, last in self._tiles():
            with lease():
                far = self._exponentials(first, last)
                slope = torch.bmm(both, far, out=take(*far.shape, dtype=far.dtype))
                slope = slope.mul_(far).mul_(4 * self.tangent).view(-1, last - first)
                self.some.add(pulls, (slope @ self.unit[first:last]).view(self.own.shape))
                pulls[first:last].addmm_(slope.t(), own)
