"""The Lp distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from losslib.distances.base import Distance
from losslib.distances.exact import euclidean, widen
from losslib.distances.minkowski import minkowski
from losslib.distances.units import unit_rows
from losslib.params import Choice, Either, Interval, Param, positive
from losslib.precision import without_autocast, working


class LpDistance(Distance):
    """p-norm of the difference, raised to a power; rows are normalised by their own p-norm.

    Equal rows are exactly 0 apart, and coincident points pass no gradient. A zero row stays zero: its
    Euclidean distance to a unit row is 1.
    """

    p = Param(
        2.0,
        valid=Either(Interval(1.0, math.inf, closed="left"), Choice(math.inf)),
        explore=(1.0, 4.0),
        symbol="p",
        meaning="order of the norm",
        larger="single large differences count more",
    )
    power = Param(
        1.0,
        valid=positive,
        explore=(1.0, 2.0),
        meaning="power the distance is raised to",
        larger="far pairs count more against near ones",
    )

    @property
    def title(self) -> str:
        """The distance in words, for axes."""
        kind = {1.0: "Manhattan", 2.0: "Euclidean", math.inf: "Chebyshev"}.get(self.p, f"L{self.p:g}")
        kind = f"squared {kind}" if self.power == 2 else kind
        tail = f" to the power {self.power:g}" if self.power not in (1, 2) else ""
        of = " of normalised embeddings" if self.normalize_embeddings else ""
        return f"{kind[0].upper()}{kind[1:]} distance{of}{tail}"

    def bounds(self) -> tuple[float, float]:
        """0 and, for normalised rows, the distance of opposite ones."""
        return (0.0, 2.0**self.power if self.normalize_embeddings else math.inf)

    def normalize(self, x: Tensor) -> Tensor:
        """Rows divided by their own p-norm where `normalize_embeddings` says so."""
        return unit_rows(x, self.p) if self.normalize_embeddings else x

    def matrix(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Matrix (N, M) between rows in working precision."""
        if self.p != 2:
            return self._raised(
                minkowski(self.normalize(x), None if y is None else self.normalize(y), self.p)
            )
        rows, by_product = self._wide(x)
        other = None if y is None else self._wide(y)[0]
        return self._raised(euclidean(rows, other, x.dtype, by_product, self.normalize_embeddings))

    def rowwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Values (N,) between paired rows."""
        return self._of_differences(self._wide(x)[0] - self._wide(y)[0], x.dtype)

    def of_pairs(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Values (P,) between rows first and second of x (N, D); every row is normalised once only."""
        self._check(x, None)
        with without_autocast(x):
            rows, dtype = self._wide(working(x))[0], working(x).dtype
            apart = rows.index_select(0, first) - rows.index_select(0, second)
            return self._of_differences(apart, dtype)

    def _of_differences(self, apart: Tensor, dtype: torch.dtype) -> Tensor:
        return self._raised(torch.linalg.vector_norm(apart, self.p, dim=1).to(dtype))

    def _wide(self, x: Tensor) -> tuple[Tensor, bool]:
        """Rows as the distance takes them, in double precision where that exists, and whether widened."""
        if self.p != 2 or not self.normalize_embeddings:
            wide, widened = widen(x)
            return self.normalize(wide), widened
        wide = unit_rows(x, dtype=x.dtype if x.device.type == "mps" else torch.float64)
        return wide, wide.dtype != x.dtype

    def _raised(self, distance: Tensor) -> Tensor:
        if self.power == 1:
            return distance
        if self.power > 1:
            return distance.pow(self.power)
        # a power below 1 has an infinite slope at 0: take the root of 1 there instead, times 0
        apart = (distance > 0).to(distance.dtype)
        return (distance + (1 - apart)).pow(self.power) * apart
