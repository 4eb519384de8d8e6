"""Regularizers: penalties on embeddings or on a weight, added to a loss after its reduction."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from losslib.declared import Declared
from losslib.distances import CosineSimilarity, LpDistance
from losslib.distances.exact import widen
from losslib.distances.units import lengths
from losslib.errors import ShapeError
from losslib.params import Choice, Either, Integer, Interval, Param, Required, positive
from losslib.precision import without_autocast, working
from losslib.reducers import DivisorReducer, MeanReducer, Reducer
from losslib.terms import DenseTerm, Term


class Regularizer(Declared, nn.Module):
    """Called on embeddings (N, D), returns one number. Subclasses implement `term`.

    reducer: how the values are reduced; the class's default, mostly MeanReducer, when None.
    """

    default_reducer: ClassVar[Callable[[], Reducer]] = MeanReducer
    parts: ClassVar[tuple[str, ...]] = ("reducer",)

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        reducer = self._take_options(values, options).get("reducer")
        if reducer is not None and not isinstance(reducer, Reducer):
            raise TypeError(f"{type(self).__name__}: reducer must be a Reducer, got {type(reducer).__name__}")
        self.reducer = type(self).default_reducer() if reducer is None else reducer

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


def _per_row(values: Tensor) -> Term:
    return DenseTerm(values, torch.ones_like(values, dtype=torch.bool))


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
        norm = lengths(embeddings, self.p).squeeze(1)
        if self.power != 1:
            present = (norm > 0).to(norm.dtype)  # a power below 1 has an infinite slope at 0
            norm = (norm + (1 - present)).pow(self.power) * present
        return _per_row(norm)


class ZeroMeanRegularizer(Regularizer):
    """The size of the sum of each row's entries: draws the mean of every embedding's entries to 0."""

    def term(self, embeddings: Tensor) -> Term:
        """One value a row."""
        return _per_row(embeddings.sum(1).abs())


class CenterInvariantRegularizer(Regularizer):
    """A quarter of the squared deviation of each squared norm from their mean: draws the norms to one size.

    Wu, Liu, Li, Wang 2017, "Deep Face Recognition with Center Invariant Loss", equation 4.
    """

    def term(self, embeddings: Tensor) -> Term:
        """One value a row."""
        squares = widen(embeddings)[0].square().sum(1)  # which single precision might not hold
        return _per_row(((squares - _mean(squares)).square() / 4).to(embeddings.dtype))


class SphericalEmbeddingRegularizer(Regularizer):
    """The squared deviation of each norm from their mean: draws the embeddings to one sphere of any radius.

    Zhang, Li, Zhang 2020, "Deep Metric Learning with Spherical Embedding", equation 7. Zero rows pass no
    gradient of their own.
    """

    def term(self, embeddings: Tensor) -> Term:
        """One value a row."""
        norms = lengths(embeddings).squeeze(1)
        return _per_row((norms - _mean(norms)).square())


class RegularFaceRegularizer(Regularizer):
    """The largest cosine of each row with another: spreads the rows, mostly class weights, apart.

    Zhao, Xu, Cheng 2019, "RegularFace: Deep Face Recognition via Exclusive Regularization", equation 4. A
    single row has no value.
    """

    def term(self, embeddings: Tensor) -> Term:
        """One value a row."""
        cosine = CosineSimilarity()(embeddings)
        if len(cosine) < 2:
            nothing = cosine.sum(1) * 0
            return DenseTerm(nothing, nothing != 0)
        itself = torch.eye(len(cosine), dtype=torch.bool, device=cosine.device)
        nearest = cosine.detach().masked_fill(itself, -torch.inf).argmax(1, keepdim=True)
        return _per_row(cosine.gather(1, nearest).squeeze(1))


class SparseCentersRegularizer(Regularizer):
    """The distance between the centers of one class: merges centers that are not needed.

    For a weight with `centers_per_class` rows for each class in turn, as that of SoftTripleLoss: the sum of
    distances over the pairs of normalised centers of each class, divided by num_classes * centers_per_class *
    (centers_per_class - 1) (Qian, Shang, Sun, Hu, Li, Jin 2019, "SoftTriple Loss", equation 9). Coincident
    centers pass no gradient.
    """

    default_reducer: ClassVar[Callable[[], Reducer]] = DivisorReducer
    num_classes = Required(Integer(1), symbol="C", meaning="number of classes")
    centers_per_class = Required(Integer(2), symbol="K", meaning="number of rows that stand for one class")

    def term(self, embeddings: Tensor) -> Term:
        """One value per pair of centers of a class. Raises ShapeError for another number of rows."""
        rows = self.num_classes * self.centers_per_class
        if len(embeddings) != rows:
            raise ShapeError(
                f"SparseCentersRegularizer: the weight must have {rows} rows (num_classes * "
                f"centers_per_class), got {len(embeddings)}"
            )
        place = torch.arange(rows, device=embeddings.device)
        group = place // self.centers_per_class
        pairs = (group.unsqueeze(1) == group) & (place.unsqueeze(1) < place)
        divisor = torch.tensor(rows * (self.centers_per_class - 1), device=embeddings.device)
        return DenseTerm(LpDistance()(embeddings), pairs, divisor)


def _mean(values: Tensor) -> Tensor:
    """Mean, 0 without any value."""
    return values.sum() / max(len(values), 1)
