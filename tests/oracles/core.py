"""What every oracle shares: who is a pair of whom, how terms are reduced, how an oracle is called."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tests.oracles.geometry import INVERTED, Spec, between, matrix

ZERO = torch.zeros((), dtype=torch.float64)


@dataclass
class Term:
    """Unreduced values, what each belongs to, and a divisor where the loss defines one."""

    values: list[Tensor]
    indices: list[Any] = field(default_factory=list)
    divisor: float | None = None
    reduced: bool = False


@dataclass
class Batch:
    """Everything an equation may ask of its inputs."""

    embeddings: Tensor
    references: Tensor
    labels: list[Any] | None
    ref_labels: list[Any] | None
    has_reference: bool
    spec: Spec
    positives: list[tuple[int, int]]
    negatives: list[tuple[int, int]]
    triplets: list[tuple[int, int, int]]

    def __post_init__(self) -> None:
        self.values = matrix(self.spec, self.embeddings, self.references)
        self.inverted = self.spec[0] in INVERTED
        self.zero = (self.embeddings.sum() + self.references.sum()) * 0.0

    def gap(self, x: Any, y: Any) -> Any:
        """x - y for a distance, y - x for a similarity: how much further x is than y."""
        return y - x if self.inverted else x - y

    def similarity(self, a: int, other: int) -> Tensor:
        """The similarity, or the negated distance."""
        return self.values[a, other] if self.inverted else -self.values[a, other]

    def between_references(self, p: int, n: int) -> Tensor:
        return between(self.spec, self.references[p], self.references[n])

    def of(self, pairs: list[tuple[int, int]], anchor: int, once: bool = False) -> list[int]:
        """The other members of an anchor's pairs, each as often as listed, or once."""
        found = [other for a, other in pairs if a == anchor]
        return list(dict.fromkeys(found)) if once else found


def log_sum_exp(values: list[Tensor]) -> Tensor:
    """Shifted by the largest value, a constant, so that nothing overflows."""
    top = max(float(v.detach()) for v in values)
    return torch.log(sum(torch.exp(v - top) for v in values)) + top


def plain(labels: Any) -> list[Any] | None:
    """Labels as Python numbers: integers compare exactly at any size."""
    return None if labels is None else [label.item() for label in labels]


def pairs_by_label(
    y: list[Any], r: list[Any], same_batch: bool
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    positives, negatives = [], []
    for i, label in enumerate(y):
        for j, other in enumerate(r):
            if label != other:
                negatives.append((i, j))
            elif not (same_batch and i == j):
                positives.append((i, j))
    return positives, negatives


def structure(indices_tuple: Any, y: Any, r: Any, same_batch: bool) -> tuple[list, list, list]:
    """Positive pairs, negative pairs and triplets, from labels or from a tuple of 3 or 4 index tensors."""
    if indices_tuple is None:
        positives, negatives = pairs_by_label(y, r, same_batch)
    else:
        lists = [[int(i) for i in part] for part in indices_tuple]
        if len(lists) == 3:
            a, p, n = lists
            return list(zip(a, p, strict=True)), list(zip(a, n, strict=True)), list(zip(a, p, n, strict=True))
        positives = list(zip(lists[0], lists[1], strict=True))
        negatives = list(zip(lists[2], lists[3], strict=True))
    triplets = [(a, p, n) for a, p in positives for b, n in negatives if a == b]
    return positives, negatives, triplets


def anchors_of(term: Term) -> list[int]:
    """Anchor of each value."""
    return [index[0] if isinstance(index, tuple) else index for index in term.indices]


def per_anchor(term: Term, batch: Batch) -> Term:
    """One value a row of the batch: the mean of its values, 0 without any."""
    owners = anchors_of(term)
    found = []
    for row in range(len(batch.embeddings)):
        own = [v for v, owner in zip(term.values, owners, strict=True) if owner == row]
        found.append(sum(own) / len(own) if own else batch.zero)
    return Term(found, list(range(len(found))))


def reduce(term: Term, how: Spec, batch: Batch) -> Tensor:
    name, options = how
    values, zero = term.values, batch.zero
    if term.reduced:
        return sum(values, zero)
    if name == "DivisorReducer":
        return sum(values, zero) / term.divisor if term.divisor else zero
    if name == "PerAnchorReducer":
        return reduce(per_anchor(term, batch), options.get("reducer", ("MeanReducer", {})), batch)
    if name == "ClassWeightedReducer":
        weights = options["weights"]
        owners = anchors_of(term)
        values = [v * weights[batch.labels[a]] for v, a in zip(values, owners, strict=True)]
        name = "MeanReducer"
    if name == "SumReducer":
        return sum(values, zero)
    if name == "AvgNonZeroReducer":
        values = [v for v in values if float(v.detach()) > 0]
    elif name == "ThresholdReducer":
        low = -float("inf") if options.get("low") is None else options["low"]
        high = float("inf") if options.get("high") is None else options["high"]
        values = [v for v in values if low < float(v.detach()) < high]
    elif name != "MeanReducer":
        raise NotImplementedError(name)
    return sum(values, zero) / len(values) if values else zero


def as_spec(value: Any) -> Spec:
    return (value, {}) if isinstance(value, str) else value


@dataclass(frozen=True)
class Oracle:
    """The equation of one loss, with the document's defaults."""

    name: str
    equation: Callable[..., dict[str, Term]]
    distance: Spec
    reducer: Spec | None
    similarity_only: bool = False
    more: tuple[dict[str, Any], ...] = ()
    only: Callable[[Spec], bool] | None = None

    def allows(self, distance: Any) -> bool:
        """Whether the equation has a meaning under that distance, a name or (name, options)."""
        spec = as_spec(distance)
        if self.only is not None:
            return self.only(spec)
        return not self.similarity_only or spec[0] in INVERTED

    def batch(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        distance: Any = None,
    ) -> Batch:
        x = embeddings.double()
        references = x if ref_emb is None else ref_emb.double()
        y = plain(labels)
        r = y if ref_emb is None else plain(ref_labels)
        kinds = structure(indices_tuple, y, r, ref_emb is None)
        spec = self.distance if distance is None else as_spec(distance)
        return Batch(x, references, y, r, ref_emb is not None, spec, *kinds)

    def terms(self, *inputs: Any, distance: Any = None, options: Any = None, **named: Any) -> dict[str, Term]:
        return self.equation(self.batch(*inputs, distance=distance, **named), **(options or {}))

    def value(
        self, *inputs: Any, distance: Any = None, reducer: Any = None, options: Any = None, **named: Any
    ) -> Tensor:
        """The reduced loss, a float64 scalar connected to the embeddings.

        Args:
            inputs: embeddings, labels, indices_tuple, ref_emb, ref_labels, as the loss takes them.
            distance: name, or (name, options), of another distance than the default.
            reducer: name, or (name, options), of another reducer than the default.
            options: the loss's own options.
            named: the same inputs by name.
        """
        return self.reduced(self.batch(*inputs, distance=distance, **named), reducer, options)

    def reduced(self, batch: Batch, reducer: Any = None, options: Any = None) -> Tensor:
        """The reduced loss of a batch whose values may have been replaced by a leaf."""
        found = self.equation(batch, **(options or {}))
        how = as_spec(reducer) if reducer is not None else self.reducer or ("MeanReducer", {})
        total = batch.zero
        for term_name, term in found.items():
            own = how
            if how[0] == "MultipleReducers":
                own = as_spec(how[1]["reducers"].get(term_name, how[1].get("default_reducer", "MeanReducer")))
            total = total + reduce(term, own, batch)
        return total


REGISTRY: dict[str, Oracle] = {}

LP: Spec = ("LpDistance", {})
COSINE: Spec = ("CosineSimilarity", {})


def define(
    name: str,
    distance: Spec,
    reducer: str | None,
    similarity_only: bool = False,
    more: tuple[dict[str, Any], ...] = (),
    only: Callable[[Spec], bool] | None = None,
) -> Callable[[Callable], Callable]:
    """Decorator: the function below is the equation of loss `name`, with these defaults.

    `more` holds combinations of options worth trying beside one option changed at a time; `only` says
    which distances the equation has a meaning under, where a similarity is not all it takes.
    """

    def register(equation: Callable[..., dict[str, Term]]) -> Callable[..., dict[str, Term]]:
        how = None if reducer is None else (reducer, {})
        REGISTRY[name] = Oracle(name, equation, distance, how, similarity_only, more, only)
        return equation

    return register
