"""Reducers: from the terms of a loss to one number, by sums and counts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from losslib.declared import Declared
from losslib.errors import ParameterError
from losslib.params import Optional, Param, finite
from losslib.precision import values_are_known
from losslib.terms import Count, DenseTerm, IndexedTerm, Term, as_term

Terms = Mapping[str, Any]


class Reducer(Declared, nn.Module):
    """Reduces each term by `reduce` and adds the results; already reduced terms are added as they are."""

    takes_divisor: ClassVar[bool] = False

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        self._take_options(values, options)

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """One term as a 0-d tensor."""
        raise NotImplementedError

    def forward(self, terms: Terms, embeddings: Tensor, labels: Tensor | None = None) -> Any:
        """The reduced loss, 0-d.

        Args:
            terms: terms by name, as `loss_terms` returns them, or mappings with `losses` and `indices`.
            embeddings: the anchors' embeddings (B, D).
            labels: the anchors' labels (B,), or None.

        Raises ValueError for a term with a divisor in a reducer that does not divide by it.
        """
        values = [self._one(name, as_term(term), embeddings, labels) for name, term in terms.items()]
        if not values:
            return embeddings.sum() * 0
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total

    def extra_repr(self) -> str:
        """The options, for printing."""
        return self._options_text()

    def _one(self, name: str, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        if term.reduced:
            return term.losses
        if term.divisor is not None and not self.takes_divisor:
            raise ValueError(
                f"{type(self).__name__}: term {name!r} has a divisor and needs DivisorReducer, directly or "
                f"through MultipleReducers({{{name!r}: DivisorReducer()}})"
            )
        return self.reduce(term, embeddings, labels)


class MeanReducer(Reducer):
    """Mean of all values; 0 without any."""

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """Sum over count."""
        return ratio(term.sum(), term.count())


class SumReducer(Reducer):
    """Sum of all values."""

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """The term's own sum."""
        return term.sum()


class ThresholdReducer(Reducer):
    """Mean of the values strictly between two thresholds; at least one must be given.

    Raises ParameterError without any, or unless low < high.
    """

    low = Param(None, valid=Optional(finite), meaning="values must be above it", larger="drops small values")
    high = Param(None, valid=Optional(finite), meaning="values must be below it", larger="keeps large values")

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        super().__init__(low=low, high=high)
        if low is None and high is None:
            raise ParameterError("ThresholdReducer: give low, high or both, got neither")
        self._check_order()

    def _check_order(self) -> None:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ParameterError(
                f"ThresholdReducer: low must be below high, got {self.low:g} and {self.high:g}, with nothing "
                "between them"
            )

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """Mean of the values between the thresholds."""
        self._check_order()  # either may have been set since
        return ratio(*term.between(self.low, self.high))


class AvgNonZeroReducer(Reducer):
    """Mean of the values greater than zero; 0 without any."""

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """Mean of the positive values."""
        return ratio(*term.between(0.0, None))


class DivisorReducer(Reducer):
    """Sum divided by the term's own divisor; 0 where the divisor is 0."""

    takes_divisor: ClassVar[bool] = True

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """Sum over divisor."""
        if term.divisor is None:
            raise ValueError(
                "DivisorReducer: the loss gives its terms no divisor; use MeanReducer or another"
            )
        divisor = term.divisor.to(term.sum().dtype)
        none = (divisor == 0).to(divisor.dtype)
        return term.sum() * (1 - none) / (divisor + none)


class ClassWeightedReducer(Reducer):
    """Mean of the values, each multiplied by the weight of its anchor's class.

    weights: one number a class, (C,); labels index it.
    """

    weights: Tensor

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        if weights.ndim != 1 or not weights.is_floating_point():
            raise ParameterError("ClassWeightedReducer: weights must be a floating tensor of shape (C,)")
        self.register_buffer("weights", weights)

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """Weighted sum over count."""
        if labels is None:
            raise ValueError("ClassWeightedReducer: needs the anchors' labels, got None")
        if labels.is_floating_point():
            raise TypeError(f"ClassWeightedReducer: labels must be whole numbers, got {labels.dtype}")
        classes = len(self.weights)
        if (
            values_are_known(labels)
            and labels.numel()
            and not bool(((labels >= 0) & (labels < classes)).all())
        ):
            raise ValueError(f"ClassWeightedReducer: labels must lie in 0..{classes - 1}, the weights given")
        sums, counts = term.per_anchor(len(embeddings))
        return ratio((sums * self.weights.to(sums)[labels.to(sums.device).long()]).sum(), counts.sum())


class PerAnchorReducer(Reducer):
    """Aggregates the values of each anchor to one, then reduces those with another reducer.

    reducer: applied to one value per row of the batch; MeanReducer when None.
    aggregation_func: from values (B, K), filled with 0, and the number of values of each row (B,), to (B,);
        None takes the mean, 0 for an anchor without values.
    """

    parts: ClassVar[tuple[str, ...]] = ("reducer", "aggregation_func")

    def __init__(
        self,
        reducer: Reducer | None = None,
        aggregation_func: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.reducer = MeanReducer() if reducer is None else reducer
        self.aggregation_func = aggregation_func

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        """One value an anchor, reduced."""
        result: Tensor = self.reducer({"loss": self.per_row(term, len(embeddings))}, embeddings, labels)
        return result

    def per_row(self, term: Term, rows: int) -> DenseTerm:
        """One value for each of `rows` anchors."""
        if self.aggregation_func is None:
            sums, counts = term.per_anchor(rows)
            values = ratio(sums, counts)
        else:
            values = self.aggregation_func(*_rows_of(term, rows))
        return DenseTerm(values, torch.ones_like(values, dtype=torch.bool))


class MultipleReducers(Reducer):
    """One reducer for each named term, and another for the rest.

    reducers: reducer by term name, as `loss_terms` names them. Names that a loss does not give are left
        unused, so that one reducer serves losses with different terms.
    default_reducer: for the other terms; MeanReducer when None.
    """

    def __init__(self, reducers: Mapping[str, Reducer], default_reducer: Reducer | None = None) -> None:
        super().__init__()
        self.reducers = nn.ModuleDict(dict(reducers))
        self.default_reducer = MeanReducer() if default_reducer is None else default_reducer

    def reducer_of(self, name: str) -> Reducer:
        """The reducer of a named term."""
        chosen: Any = self.reducers[name] if name in self.reducers else self.default_reducer  # noqa: SIM401
        reducer: Reducer = chosen
        return reducer

    def _one(self, name: str, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        result: Tensor = self.reducer_of(name)({name: term}, embeddings, labels)
        return result


class DoNothingReducer(Reducer):
    """Returns the terms themselves, by name."""

    def forward(self, terms: Terms, embeddings: Tensor, labels: Tensor | None = None) -> dict[str, Term]:
        """The terms as they are."""
        return {name: as_term(term) for name, term in terms.items()}


def ratio(total: Tensor, count: Count) -> Tensor:
    """total / count, and 0 where the count is 0 (the total is 0 there too)."""
    return total / count.clamp_min(1) if isinstance(count, Tensor) else total / max(count, 1)


def _rows_of(term: Term, rows: int) -> tuple[Tensor, Tensor]:
    """Values of each anchor side by side, (B, K) filled with 0, and their number (B,)."""
    if isinstance(term, DenseTerm) and term.values.ndim == 2 and term.weight.dtype == torch.bool:
        return term.values * term.weight.to(term.values.dtype), term.weight.sum(1)
    listed: IndexedTerm = term.to_indexed()
    anchors, order = listed.anchors().sort(stable=True)
    counts = torch.bincount(anchors, minlength=rows)
    place = torch.arange(len(anchors), device=anchors.device) - (counts.cumsum(0) - counts)[anchors]
    width = int(counts.max()) if len(anchors) else 0
    return listed.losses.new_zeros(rows, width).index_put((anchors, place), listed.losses[order]), counts
