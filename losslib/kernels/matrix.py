"""The distance matrix of a fused form, and the gradient by the rows from that by the matrix."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.distances.exact import centre, distances_by_difference, distances_by_product
from losslib.kernels.rows import Rows
from losslib.precision import values_are_known

NEAR = 0.01  # squared distance over the squared norms, below which single precision is not enough
NARROW = 32  # columns up to which double precision costs nothing


class Matrix:
    """Values (B, R) of a distance between the rows x and y (None: x itself), and their way back."""

    def __init__(self, x: Tensor, y: Tensor | None, distance: Distance) -> None:
        self.distance = distance
        self.x = Rows(x, distance)
        self.y = None if y is None else Rows(y, distance)
        self.exact = not distance.is_inverted
        self.values = self._similarities() if distance.is_inverted else self._distances()

    def _similarities(self) -> Tensor:
        return self.x.unit @ (self.x if self.y is None else self.y).unit.t()

    def _distances(self) -> Tensor:
        x, dtype = self.x.given, self.x.given.dtype
        known = x.device.type == "cpu" and values_are_known(x)
        if dtype == torch.float32 and known and self.x.normalised and x.shape[1] > NARROW:
            distance = self._in_single()
            if distance is not None:
                return self._raised(distance)
        other = None if self.y is None else self.y.wide
        if dtype == self.x.wide.dtype:
            return self._raised(distances_by_difference(self.x.wide, other))
        return self._raised(distances_by_product(self.x.wide, other, self.x.normalised).to(dtype))

    def _in_single(self) -> Tensor | None:
        """Distances of unit rows by a product in single precision, or None where any pair is near.

        The diagonal of a batch with itself is not 0 there: it is no pair.
        """
        x = self.x.unit
        squares = self.x.squares(x)
        if self.y is None:
            squared = (
                torch.addmm(squares, x, x.t(), alpha=-2.0).add_(squares.unsqueeze(1)).fill_diagonal_(4.0)
            )
        else:
            y = self.y.unit
            squared = torch.addmm(self.y.squares(y), x, y.t(), alpha=-2.0).add_(squares.unsqueeze(1))
        if not squared.amin().item() > 2 * NEAR:
            return None
        self.exact = False
        return squared.sqrt_()

    def _raised(self, distance: Tensor) -> Tensor:
        power: float = getattr(self.distance, "power", 1.0)
        self._root = distance
        return distance if power == 1 else distance.square()

    def back(
        self, slope: Tensor, want_x: bool, want_y: bool, symmetric: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """Gradients by both sets of embeddings from the gradient by the values, (B, R); overwrites it.

        symmetric: whether the slope is, of a batch with itself.
        """
        if self.distance.is_inverted:
            pull, sign = slope, 1.0
        elif getattr(self.distance, "power", 1.0) == 1:
            pull, sign = (
                slope.div_(torch.threshold(self._root, 0.0, torch.inf) if self.exact else self._root),
                -1.0,
            )
        else:
            pull, sign = slope, -2.0
        if self.exact:
            return self._back_exactly(pull, -sign, want_x, want_y)
        x = self.x.unit
        if self.y is None:
            once = pull @ x
            if symmetric:
                return self.x.back(once.mul_(2 * sign)), None
            return self.x.back(torch.addmm(once, pull.t(), x, beta=sign, alpha=sign)), None
        by_x = self.x.back((pull @ self.y.unit).mul_(sign)) if want_x else None
        by_y = self.y.back((pull.t() @ x).mul_(sign)) if want_y else None
        return by_x, by_y

    def _back_exactly(
        self, pull: Tensor, scale: float, want_x: bool, want_y: bool
    ) -> tuple[Tensor | None, Tensor | None]:
        """For near pairs, whose pull is large: in double precision, with the part along the row."""
        wide = self.x.wide
        middle = centre(wide)  # far from the origin, sum(pull) * x - pull @ y would cancel
        a = wide - middle
        if self.y is None:
            both = (pull + pull.t()).to(wide.dtype)
            return self.x.back(
                torch.addmm(both.sum(1, keepdim=True) * a, both, a, beta=scale, alpha=-scale)
            ), None
        b, pull = self.y.wide - middle, pull.to(wide.dtype).mul(scale)
        by_x = self.x.back(pull.sum(1, keepdim=True) * a - pull @ b) if want_x else None
        by_y = self.y.back(pull.sum(0).unsqueeze(1) * b - pull.t() @ a) if want_y else None
        return by_x, by_y
