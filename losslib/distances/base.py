"""What every distance offers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from torch import Tensor, nn

from losslib.declared import Declared
from losslib.distances.units import unit_rows
from losslib.errors import ShapeError
from losslib.params import Param, boolean
from losslib.precision import without_autocast, working


class Distance(Declared, nn.Module):
    """A distance or similarity: called on embeddings, it returns the matrix of all pairs.

    Subclasses set `is_inverted` (True where larger means closer), `title` and `bounds`, and implement
    `matrix` and `rowwise`, on embeddings already in working precision, normalising as asked.
    """

    is_inverted: ClassVar[bool] = False
    normalize_embeddings = Param(
        True,
        valid=boolean,
        meaning="whether rows are divided by their norm first",
        larger="only angles matter",
    )

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        self._take_options(values, options)

    @property
    def title(self) -> str:
        """The distance in words, for axes."""
        raise NotImplementedError

    def bounds(self) -> tuple[float, float]:
        """The least and greatest value it can take; either may be infinite."""
        return (0.0, math.inf)

    def matrix(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Matrix (N, M) between the rows of x (N, D) and of y (M, D), or of x itself."""
        raise NotImplementedError

    def rowwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Values (N,) between row i of x and row i of y, both (N, D)."""
        raise NotImplementedError

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Matrix (N, M) of values between the rows of x (N, D) and of y (M, D); without y, of x itself.

        half and bfloat16 give float32. Raises ShapeError for rows of another size.
        """
        self._check(x, y)
        with without_autocast(x):
            return self.matrix(working(x), None if y is None else working(y))

    def pairwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Values (N,) between row i of x and row i of y. Raises ShapeError where the shapes differ."""
        self._check(x, y)
        if x.shape != y.shape:
            raise ShapeError(f"{type(self).__name__}: rows must pair up, got {_shape(x)} and {_shape(y)}")
        with without_autocast(x):
            return self.rowwise(working(x), working(y))

    def of_pairs(self, x: Tensor, first: Tensor, second: Tensor) -> Tensor:
        """Values (P,) between rows first and second of x (N, D), both (P,): `pairwise` of those rows."""
        self._check(x, None)
        return self.pairwise(x.index_select(0, first), x.index_select(0, second))

    def normalize(self, x: Tensor) -> Tensor:
        """Rows divided by their norm where `normalize_embeddings` says so; zero rows stay zero."""
        return unit_rows(x) if self.normalize_embeddings else x

    def margin(self, x: Any, y: Any) -> Any:
        """x - y, or y - x for a similarity: positive where x is the farther of the two."""
        return y - x if self.is_inverted else x - y

    def extra_repr(self) -> str:
        """The options, for printing."""
        return self._options_text()

    def _check(self, x: Tensor, y: Tensor | None) -> None:
        if x.ndim != 2 or (y is not None and (y.ndim != 2 or y.shape[1] != x.shape[1])):
            got = _shape(x) if y is None else f"{_shape(x)} and {_shape(y)}"
            raise ShapeError(f"{type(self).__name__}: embeddings must be (N, D), of one size D, got {got}")
        if y is not None and working(x).dtype != working(y).dtype:
            raise ShapeError(
                f"{type(self).__name__}: embeddings must be of one dtype, got {x.dtype} and {y.dtype}"
            )


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))
