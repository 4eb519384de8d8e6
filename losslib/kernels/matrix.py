"""The distance matrix of a fused form, and the gradient by the rows from that by the matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.distances.exact import centre, distances_by_difference, distances_by_product
from losslib.kernels.rows import Rows, centre_of_near
from losslib.kernels.scratch import constant, room, take
from losslib.precision import known_on_cpu

NEAR = 0.01  # squared distance over the squared norms, below which single precision is not enough
NARROW = 32  # columns up to which double precision costs nothing


class Matrix:
    """Values (B, R) of a distance between the rows x and y (None: x itself), and their way back.

    known: whether the rows are on the CPU and may be looked at; None to find out.
    """

    def __init__(self, x: Tensor, y: Tensor | None, distance: Distance, known: bool | None = None) -> None:
        self.distance = distance
        self.known = known_on_cpu(x) if known is None else known
        self.power: float = 1.0 if distance.is_inverted else getattr(distance, "power", 1.0)
        self.x = Rows(x, distance, self.known)
        self.y = None if y is None else Rows(y, distance, self.known)
        self.exact = not distance.is_inverted
        self.values = self._similarities() if distance.is_inverted else self._distances()

    def _similarities(self) -> Tensor:
        x, others = self.x.unit, (self.x if self.y is None else self.y).unit
        if not self.known:
            return x @ others.t()
        return torch.mm(x, others.t(), out=take(x.shape[0], others.shape[0], dtype=x.dtype))

    def _distances(self) -> Tensor:
        x, dtype = self.x.given, self.x.given.dtype
        if dtype == torch.float32 and self.known and self.x.normalised and x.shape[1] > NARROW:
            distance = self._in_single()
            if distance is not None:
                return distance
        other = None if self.y is None else self.y.wide
        if dtype == self.x.wide.dtype:
            return self._raised(distances_by_difference(self.x.wide, other))
        return self._raised(distances_by_product(self.x.wide, other, self.x.normalised).to(dtype))

    def _in_single(self) -> Tensor | None:
        """Distances, raised, of unit rows by a product in single precision, or None where any pair is near.

        The diagonal of a batch with itself is not 0 there: it is no pair.
        """
        x = self.x.unit
        if self.x.narrow is not None and (self.y is None or self.y.narrow is not None):
            others = x if self.y is None else self.y.unit
            out = take(x.shape[0], others.shape[0], dtype=x.dtype)
            squared = torch.addmm(constant(2.0, x), x, others.t(), alpha=-2.0, out=out)
            if self.y is None:
                squared.fill_diagonal_(4.0)
            return self._raised_root(squared)
        squares = self.x.squares(x)
        if self.y is None:
            squared = (
                torch.addmm(squares, x, x.t(), alpha=-2.0).add_(squares.unsqueeze(1)).fill_diagonal_(4.0)
            )
        else:
            y = self.y.unit
            squared = torch.addmm(self.y.squares(y), x, y.t(), alpha=-2.0).add_(squares.unsqueeze(1))
        return self._raised_root(squared)

    def _raised_root(self, squared: Tensor) -> Tensor | None:
        if not squared.amin().item() > 2 * NEAR:
            return None
        self.exact = False
        return squared if self.power == 2 else self._raised(squared.sqrt_())

    def _raised(self, distance: Tensor) -> Tensor:
        self._root = distance
        return distance if self.power == 1 else distance.square()

    def back(
        self,
        slope: Tensor,
        want_x: bool,
        want_y: bool,
        both: bool,
        lifted: float = 1.0,
        ordered: bool = False,
    ) -> tuple[Tensor | None, Tensor | None]:
        """Gradients by both sets of embeddings from the gradient by the values, (B, R); overwrites it.

        both: whether the slope, of a batch with itself, is that of both orders of a pair together.
        lifted: what the slope is multiplied by, to be divided by in the end.
        ordered: whether the rows, of a batch with itself, are in the order of their labels.
        """
        if self.distance.is_inverted:
            pull, sign = slope, 1.0
        elif self.power == 1:
            root = torch.threshold(self._root, 0.0, torch.inf) if self.exact else self._root
            pull, sign = slope.div_(root), -1.0
        else:
            pull, sign = slope, -2.0
        sign /= lifted
        if self.exact:
            return self._back_exactly(pull, -sign, want_x, want_y, both)
        x = self.x.unit
        if ordered:
            return self.x.back(self._pulled_in_order(pull if both else pull + pull.t(), sign)), None
        if self.y is None:
            once = _product(pull, x, sign, x)
            return self.x.back(once if both else once.addmm_(pull.t(), x, alpha=sign)), None
        y = self.y.unit
        by_x = self.x.back(_product(pull, y, sign, x)) if want_x else None
        by_y = self.y.back(_product(pull.t(), x, sign, y)) if want_y else None
        return by_x, by_y

    def _pulled_in_order(self, pull: Tensor, times: float) -> Tensor:
        """times * pull @ x, but for a part along x itself, which leads to no gradient by unit rows."""
        x = self.x.unit
        middle = centre_of_near(x) if self.x.normalised else None
        if middle is None:
            return _product(pull, x, times, x)
        pull.diagonal().sub_(pull.sum(1))
        return _product(pull, torch.sub(x, middle, out=room(x)), times, x)

    def _back_exactly(
        self, pull: Tensor, scale: float, want_x: bool, want_y: bool, both: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """For near pairs, whose pull is large: in double precision, with the part along the row."""
        wide = self.x.wide
        middle = centre(wide)  # far from the origin, sum(pull) * x - pull @ y would cancel
        a = wide - middle
        if self.y is None:
            pull = (pull if both else pull + pull.t()).to(wide.dtype)
            return self.x.back(
                torch.addmm(pull.sum(1, keepdim=True) * a, pull, a, beta=scale, alpha=-scale)
            ), None
        b, pull = self.y.wide - middle, pull.to(wide.dtype).mul(scale)
        by_x = self.x.back(pull.sum(1, keepdim=True) * a - pull @ b) if want_x else None
        by_y = self.y.back(pull.sum(0).unsqueeze(1) * b - pull.t() @ a) if want_y else None
        return by_x, by_y


def _product(a: Tensor, b: Tensor, times: float, like: Tensor) -> Tensor:
    """times * a @ b, of the shape of `like`, where the number costs no further step."""
    return torch.addmm(like, a, b, beta=0.0, alpha=times)
