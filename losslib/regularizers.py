"""Regularizers: penalties on the embeddings, added to a loss after its reduction."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from losslib.declared import Declared
from losslib.errors import ShapeError
from losslib.params import Choice, Either, Interval, Param, positive
from losslib.precision import without_autocast, working
from losslib.reducers import MeanReducer, Reducer
from losslib.terms import DenseTerm, Term


class Regularizer(Declared, nn.Module):
    """Called on embeddings (N, D), returns one number. Subclasses implement `term`.

    reducer: how the values are reduced; MeanReducer when None.
    """

    parts: ClassVar[tuple[str, ...]] = ("reducer",)

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        reducer = self._take_options(values, options).get("reducer")
        if reducer is not None and not isinstance(reducer, Reducer):
            raise TypeError(f"{type(self).__name__}: reducer must be a Reducer, got {type(reducer).__name__}")
        self.reducer = MeanReducer() if reducer is None else reducer

    def term(self, embeddings: Tensor) -> Term:
        """The unreduced penalties of embeddings in working precision."""
        raise NotImplementedError

    def forward(self, embeddings: Tensor) -> Tensor:
        """The reduced penalty, 0-d. Raises ShapeError unless embeddings are (N, D)."""
        if embeddings.ndim != 2:
            raise ShapeError(
                f"{type(self).__name__}: embeddings must be (N, D), got {tuple(embeddings.shape)}"
            )
        with without_autocast(embeddings):
            x = working(embeddings)
            result: Tensor = self.reducer({"reg_loss": self.term(x)}, x, None)
        return result

    def extra_repr(self) -> str:
        """The options, for printing."""
        return self._options_text()


class LpRegularizer(Regularizer):
    """The p-norm of each embedding, raised to a power: keeps norms small. Zero rows pass no gradient."""

    p = Param(
        2.0,
        valid=Either(Interval(1.0, math.inf, closed="left"), Choice(math.inf)),
        explore=(1.0, 4.0),
        symbol="p",
        meaning="order of the norm",
        larger="single large entries count more",
    )
    power = Param(
        1.0,
        valid=positive,
        explore=(1.0, 2.0),
        meaning="power the norm is raised to",
        larger="large norms count more against small ones",
    )

    def term(self, embeddings: Tensor) -> Term:
        """One value a row."""
        norm = torch.linalg.vector_norm(embeddings, self.p, dim=1)
        if self.power != 1:
            present = (norm > 0).to(norm.dtype)  # a power below 1 has an infinite slope at 0
            norm = (norm + (1 - present)).pow(self.power) * present
        return DenseTerm(norm, torch.ones_like(norm, dtype=torch.bool))
