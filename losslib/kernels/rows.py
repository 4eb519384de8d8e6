"""The rows a fused form works on, and the way back from their gradient to the embeddings'.

Unit rows are divided in double precision and rounded once, as in `losslib.distances.units`. A Euclidean
distance by matrix product in single precision loses the digits of near points, so where any pair is near the
rows are taken in double precision instead (`wide`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.distances.exact import centre, widen
from losslib.distances.units import back_through_units, norms, unit_rows
from losslib.kernels.scratch import room, take
from losslib.precision import known_on_cpu

_LEAST, _MOST = 1e-15, 1e15  # norms whose squares single precision holds
_TOGETHER = 0.8  # square of the norm of the mean of unit rows, below which their pulls cancel little


class Rows:
    """Embeddings (N, D) as a distance sees them: divided by their norms, or as they are.

    known: whether they are on the CPU and may be looked at; None to find out.
    """

    def __init__(self, x: Tensor, distance: Distance, known: bool | None = None) -> None:
        self.given = x
        self.normalised: bool = distance.normalize_embeddings
        self.narrow: Tensor | None = None  # the norms in single precision, where all are ordinary numbers
        self._norm: Tensor | None = None
        self._wide: Tensor | None = None
        self._unit: Tensor | None = None
        self._single = self.normalised and x.dtype == torch.float32
        if self._single and (known_on_cpu(x) if known is None else known) and x.shape[0]:
            norm = torch.linalg.vector_norm(x, dim=1, keepdim=True)
            low, high = torch.aminmax(norm)
            if low.item() > _LEAST and high.item() < _MOST:
                self.narrow = norm

    @property
    def norm(self) -> Tensor | None:
        """The norms (N, 1) of rows in single precision in double precision, None of others."""
        if self._norm is None and self._single:
            self._norm = norms(self.given)
        return self._norm

    @property
    def wide(self) -> Tensor:
        """The rows in double precision."""
        if self._wide is None:
            if self.norm is not None:
                self._wide = self.given / self.norm
            else:
                self._wide = unit_rows(self.given) if self.normalised else widen(self.given)[0]
        return self._wide

    @property
    def unit(self) -> Tensor:
        """The rows in their own precision."""
        if self._unit is None:
            if self.narrow is not None and self._wide is None:
                out = take(*self.given.shape, dtype=self.given.dtype)
                self._unit = torch.div(self.given, self.narrow, out=out)
            elif self.norm is not None and self._wide is None:
                self._unit = torch.div(self.given, self.norm, out=torch.empty_like(self.given))
            else:
                self._unit = self.wide.to(self.given.dtype) if self.normalised else self.given
        return self._unit

    def squares(self, rows: Tensor) -> Tensor:
        """Squared norms (N,) of rows made from these: 1 and 0 without rounding where they are unit rows."""
        if not self.normalised:
            return (rows * rows).sum(1)
        if self.narrow is not None:
            return rows.new_ones(len(rows))
        some = (self.given != 0).any(1) if self.norm is None else (self.norm < torch.inf).squeeze(1)
        return some.to(rows.dtype)

    def back(self, grad: Tensor, times: float = 1.0) -> Tensor:
        """The gradient by the embeddings: that by the rows (N, D), which it may overwrite, times a number."""
        if self.narrow is not None and grad.dtype == self.narrow.dtype:
            unit = self.unit
            along = torch.mul(grad, unit, out=room(grad)).sum(1, keepdim=True)
            norm = self.narrow if times == 1 else self.narrow / times
            return grad.addcmul_(unit, along, value=-1).div_(norm)
        grad = grad if times == 1 else grad.mul_(times)
        if not self.normalised:
            return grad.to(self.given.dtype)
        if not self._single:  # double precision, whose squares may overflow
            return back_through_units(self.given, grad)
        unit = self.unit if grad.dtype == self.given.dtype else self.wide
        assert self.norm is not None
        across = torch.addcmul(grad, unit, (grad * unit).sum(1, keepdim=True), value=-1)
        return across.div_(self.norm.to(across.dtype)).to(self.given.dtype)


def centre_of_near(unit: Tensor) -> Tensor | None:
    """The mean (D,) of unit rows in the order of their labels, None unless they are near each other.

    Then their pulls cancel. Those of one sign, side by side in that order, add up to much before the others
    come, unless the rows are taken about their centre.
    """
    if not torch.dot(unit[0], unit[-1]).item() > _TOGETHER / 2:  # which in most batches tells at once
        return None
    middle = centre(unit)
    return middle if torch.dot(middle, middle).item() > _TOGETHER else None
