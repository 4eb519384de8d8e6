"""Cosine similarity and dot product."""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor

from losslib.distances.base import Distance
from losslib.params import Param, boolean


class DotProductSimilarity(Distance):
    """Dot product of the embeddings, of their directions when `normalize_embeddings` is set."""

    is_inverted: ClassVar[bool] = True
    normalize_embeddings = Param(
        False,
        valid=boolean,
        meaning="whether rows are divided by their norm first",
        larger="only angles matter",
    )

    @property
    def title(self) -> str:
        """The similarity in words, for axes."""
        return "Cosine similarity" if self.normalize_embeddings else "Dot product"

    def bounds(self) -> tuple[float, float]:
        """-1 and 1 for normalised rows, else no ends."""
        return (-1.0, 1.0) if self.normalize_embeddings else (-math.inf, math.inf)

    def matrix(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Matrix (N, M) between rows in working precision."""
        a = self.normalize(x)
        return a @ (a if y is None else self.normalize(y)).t()

    def rowwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Values (N,) between paired rows."""
        return (self.normalize(x) * self.normalize(y)).sum(1)


class CosineSimilarity(DotProductSimilarity):
    """Cosine of the angle between embeddings; 0 with a zero row, which passes no gradient."""

    normalize_embeddings = True  # settled, not an option
