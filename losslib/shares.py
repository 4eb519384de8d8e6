"""The share of a chunk of anchors in a reduced loss: its own sums over the counts of all chunks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.reducers import (
    ClassWeightedReducer,
    DoNothingReducer,
    MultipleReducers,
    PerAnchorReducer,
    Reducer,
    SumReducer,
)
from losslib.terms import Count, IndexedTerm, Term


class Ledger:
    """Counts and divisors of all chunks: entered chunk by chunk, then closed and read."""

    def __init__(self) -> None:
        self._totals: dict[tuple[Any, ...], Any] = {}
        self._closed = False

    def close(self) -> None:
        """From now on entries are read."""
        self._closed = True

    def entry(self, key: tuple[Any, ...], own: Any) -> Any:
        """The chunk's own number while entering, the total of all chunks when closed."""
        if self._closed:
            return self._totals[key]
        own = own.detach() if isinstance(own, Tensor) else own
        self._totals[key] = self._totals[key] + own if key in self._totals else own
        return own


class ShareTerm(Term):
    """A chunk's term as a reducer sees it: the sums are its own, counts and divisor those of all chunks."""

    def __init__(self, term: Term, name: str, ledger: Ledger) -> None:
        self._term, self._name, self._ledger = term, name, ledger
        self.divisor = None if term.divisor is None else ledger.entry((name, "divisor"), term.divisor)

    def sum(self) -> Tensor:
        """Sum of the chunk's values."""
        return self._term.sum()

    def count(self) -> Count:
        """Number of all values."""
        number: Count = self._ledger.entry((self._name, "count"), self._term.count())
        return number

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Count]:
        """Sum of the chunk's values strictly between low and high, and the number of all such values."""
        total, own = self._term.between(low, high)
        return total, self._ledger.entry((self._name, "between", low, high), own)

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Not known to a chunk."""
        raise ValueError(_ALL_AT_ONCE)

    def to_indexed(self, limit: int | None = None) -> IndexedTerm:
        """Not known to a chunk."""
        raise ValueError(_ALL_AT_ONCE)


_ALL_AT_ONCE = (
    "anchor_batched_backward: the reducer needs all values at once; use one that asks for sums and counts, "
    "such as MeanReducer"
)


def share_of(reducer: Reducer | None, name: str, term: Term, ledger: Ledger, chunk: Batch) -> Tensor:
    """What a chunk's term adds to the reduced loss, 0-d; without a reducer values are added."""
    if reducer is None:
        return share_of(SumReducer(), name, term, ledger, chunk)
    if isinstance(reducer, DoNothingReducer):
        raise ValueError("anchor_batched_backward: DoNothingReducer gives no single number to differentiate")
    if isinstance(reducer, MultipleReducers):
        return share_of(reducer.reducer_of(name), name, term, ledger, chunk)
    rows, labels = chunk.embeddings, chunk.labels
    if isinstance(reducer, PerAnchorReducer) and term.divisor is None:
        return share_of(reducer.reducer, name, reducer.per_row(term, len(rows)), ledger, chunk)
    if isinstance(reducer, ClassWeightedReducer) and term.divisor is None:
        own = torch.as_tensor(term.count(), device=rows.device)
        number = torch.as_tensor(ledger.entry((name, "count"), term.count()), device=rows.device)
        mean: Tensor = reducer.reduce(term, rows, labels)
        return mean * own.clamp_min(1).to(mean.dtype) / number.clamp_min(1)
    value: Tensor = reducer({name: ShareTerm(term, name, ledger)}, rows, labels)
    return value
