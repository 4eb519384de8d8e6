"""Terms: the unreduced values of a loss, which know how to sum themselves.

A reducer asks a term for sums and counts and never needs its values written out; `losses` and `indices`
write them out, one value per term, for people and plots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

Count = Tensor | int


class Term:
    """Unreduced values of a loss. `divisor` is a 0-d tensor where the loss defines one, else None."""

    divisor: Tensor | None = None
    reduced: bool = False  # True for a single value that reducers add as it is

    def sum(self) -> Tensor:
        """Sum of all values, 0-d."""
        raise NotImplementedError

    def count(self) -> Count:
        """Number of values."""
        raise NotImplementedError

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Count]:
        """Sum and number of the values strictly between low and high; None means no limit."""
        raise NotImplementedError

    def count_positive(self) -> Count:
        """Number of values > 0."""
        return self.between(0.0, None)[1]

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of the values of each of `rows` anchors, both (rows,)."""
        raise NotImplementedError

    def to_indexed(self, limit: int | None = None) -> IndexedTerm:
        """The values with their index tensors. With a limit, at most that many of them."""
        raise NotImplementedError

    @property
    def losses(self) -> Tensor:
        """One value per term, (T,)."""
        return self.to_indexed().losses

    @property
    def indices(self) -> Any:
        """Where each value comes from: one index tensor, (anchors, others), TripletIndices or None."""
        return self.to_indexed().indices

    def __getitem__(self, key: str) -> Any:
        if key not in ("losses", "indices", "divisor"):
            raise KeyError(key)
        return getattr(self, key)


class DenseTerm(Term):
    """Values of shape (B, R) or (B,) with a weight of that shape: how often each entry counts (0: absent).

    The weight may be boolean or integer. Static shapes: nothing here synchronises a device.
    """

    def __init__(
        self, values: Tensor, weight: Tensor, divisor: Tensor | None = None, non_negative: bool = False
    ) -> None:
        self.values, self.weight, self.divisor = values, weight, divisor
        self.non_negative = non_negative  # known beforehand: saves a pass over the matrix

    def sum(self) -> Tensor:
        """Sum of all values, 0-d."""
        return (self.values * self.weight.to(self.values.dtype)).sum()

    def count(self) -> Tensor:
        """Number of values."""
        return self.weight.sum()

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Tensor]:
        """Sum and number of the values strictly between low and high."""
        if low == 0 and high is None and self.weight.dtype == torch.bool:
            kept = self.values * self.weight.to(self.values.dtype)
            kept = kept if self.non_negative else kept.relu()
            return kept.sum(), torch.count_nonzero(kept)
        weight = self.weight
        if low is not None:
            weight = weight * (self.values > low)
        if high is not None:
            weight = weight * (self.values < high)
        return (self.values * weight.to(self.values.dtype)).sum(), weight.sum()

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of the values of each anchor."""
        values = self.values * self.weight.to(self.values.dtype)
        return (values, self.weight.long()) if values.ndim == 1 else (values.sum(1), self.weight.sum(1))

    def to_indexed(self, limit: int | None = None) -> IndexedTerm:
        """The values with their index tensors, row by row."""
        places = self.weight.nonzero(as_tuple=True)
        if self.weight.dtype != torch.bool:
            repeats = self.weight[places]
            places = tuple(place.repeat_interleave(repeats) for place in places)
        term = IndexedTerm(self.values[places], places[0] if len(places) == 1 else places, self.divisor)
        return term.to_indexed(limit)


class IndexedTerm(Term):
    """Values (T,) with index tensors; with `indices=None` a single value that needs no reduction.

    `sample_of` is the number of values that these are a sample of, None when they are all.
    """

    sample_of: int | None = None

    def __init__(self, losses: Tensor, indices: Any, divisor: Tensor | None = None) -> None:
        self._losses, self._indices, self.divisor = losses, indices, divisor
        self.reduced = indices is None

    @property
    def losses(self) -> Tensor:
        """One value per term, (T,), or the reduced value."""
        return self._losses

    @property
    def indices(self) -> Any:
        """Where each value comes from."""
        return self._indices

    def sum(self) -> Tensor:
        """Sum of all values, 0-d."""
        return self.losses.sum()

    def count(self) -> int:
        """Number of values."""
        return self.losses.numel()

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Tensor]:
        """Sum and number of the values strictly between low and high."""
        inside = torch.ones_like(self.losses, dtype=torch.bool)
        if low is not None:
            inside = inside & (self.losses > low)
        if high is not None:
            inside = inside & (self.losses < high)
        return (self.losses * inside.to(self.losses.dtype)).sum(), inside.sum()

    def anchors(self) -> Tensor:
        """Anchor of each value, (T,)."""
        anchors: Tensor = self.indices[0] if isinstance(self.indices, tuple) else self.indices
        return anchors

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of the values of each anchor."""
        anchors = self.anchors().long()
        sums = self.losses.new_zeros(rows).index_add(0, anchors, self.losses)
        counts = torch.zeros(rows, dtype=torch.int64, device=anchors.device)
        return sums, counts.index_add(0, anchors, torch.ones_like(anchors))

    def to_indexed(self, limit: int | None = None) -> IndexedTerm:
        """The term itself, or its first `limit` values."""
        if limit is None or self.reduced or limit >= self.count():
            return self
        kept = self.indices
        kept = tuple(index[:limit] for index in kept) if isinstance(kept, tuple) else kept[:limit]
        part = IndexedTerm(self.losses[:limit], kept, self.divisor)
        part.sample_of = self.losses.numel()
        return part


def reduced_term(value: Tensor) -> IndexedTerm:
    """A value that is already reduced."""
    return IndexedTerm(value, None)


def as_term(term: Term | Mapping[str, Any]) -> Term:
    """A term as it is, or one made from a mapping with `losses`, `indices` and, optionally, `divisor`."""
    if isinstance(term, Term):
        return term
    missing = {"losses", "indices"} - set(term)
    if missing:
        raise ValueError(
            f"a term needs losses and indices, got a mapping without {' and '.join(sorted(missing))}"
        )
    return IndexedTerm(term["losses"], term["indices"], term.get("divisor"))
