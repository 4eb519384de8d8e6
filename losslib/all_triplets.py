"""All triplets of a batch as terms that are summed without being written out."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.terms import IndexedTerm, Term
from losslib.triplets import numbered
from losslib.types import TripletIndices


class AllTripletsTerm(Term):
    """One value for every (anchor, positive, negative) of two masks (B, R)."""

    def __init__(self, positive: Tensor, negative: Tensor) -> None:
        self.positive, self.negative = positive, negative

    def values_of(self, triplets: TripletIndices) -> Tensor:
        """The values (T,) of given triplets."""
        raise NotImplementedError

    def triplets_per_anchor(self) -> Tensor:
        """Number of triplets of each anchor, (B,)."""
        return self.positive.sum(1) * self.negative.sum(1)

    def count(self) -> Tensor:
        """Number of triplets."""
        return self.triplets_per_anchor().sum()

    def to_indexed(self, limit: int | None = None) -> IndexedTerm:
        """All triplets written out; with a limit an even sample of them, `sample_of` being their number."""
        total = int(self.count())
        wanted = total if limit is None else min(limit, total)
        numbers = torch.arange(wanted, device=self.positive.device)  # all of them may be too many to number
        numbers = numbers if wanted == total else numbers * total // wanted
        triplets = numbered(self.positive, self.negative, numbers)
        term = IndexedTerm(self.values_of(triplets), triplets, self.divisor)
        term.sample_of = total if len(numbers) < total else None
        return term


class HingeTripletsTerm(AllTripletsTerm):
    """max(0, d_ap - d_an + margin) over all triplets, by sorting: O(B R log R), nothing of size B R R.

    The number of active negatives of each positive, and of active positives of each negative, are
    constants of the sum, which is then linear in the distances: derivatives of any order follow.
    """

    def __init__(self, separation: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
        super().__init__(positive, negative)
        self.separation, self.margin = separation, margin
        self._active: tuple[Tensor, Tensor] | None = None
        with torch.no_grad():
            # rounding in d_ap + margin would flip triplets: measure from the farthest positive first
            self._reference = _farthest(separation, positive)

    def values_of(self, triplets: TripletIndices) -> Tensor:
        """The hinges (T,) of given triplets."""
        anchors, positives, negatives = triplets
        return (
            self.separation[anchors, positives] - self.separation[anchors, negatives] + self.margin
        ).relu()

    def sum(self) -> Tensor:
        """Sum of all hinges."""
        return self._row_sums(self.active(), self.margin).sum()

    def count_positive(self) -> Tensor:
        """Number of triplets that violate the margin."""
        return self.active()[0].sum()

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum of the hinges and number of the triplets of each anchor."""
        return self._row_sums(self.active(), self.margin), self.triplets_per_anchor()

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Tensor]:
        """Sum and number of the hinges strictly between low and high."""
        floor = 0.0 if low is None or low < 0 else low
        total, number = self._beyond(floor, inclusive=False)
        if low is None or low < 0:
            number = self.count()  # hinges of 0 count too
        if high is not None:
            if high <= floor:
                return total * 0, number * 0
            sum_high, count_high = self._beyond(high, inclusive=True)
            total, number = total - sum_high, number - count_high
        return total, number

    def _beyond(self, limit: float, inclusive: bool) -> tuple[Tensor, Tensor]:
        """Sum and number of the hinges above the limit (at or above it, inclusive)."""
        counts = self.active()
        if limit != 0 or inclusive:
            with torch.no_grad():
                counts = self._count(self.margin - limit, inclusive)
        return self._row_sums(counts, self.margin).sum(), counts[0].sum()

    def _row_sums(self, counts: tuple[Tensor, Tensor], margin: float) -> Tensor:
        of_positive, of_negative = counts
        weight = (of_positive - of_negative).to(self.separation.dtype)
        linear = (weight * (self.separation - self._reference)).sum(1)
        return linear + margin * of_positive.sum(1).to(linear.dtype)

    def active(self) -> tuple[Tensor, Tensor]:
        """Active negatives of each positive and active positives of each negative, both (B, R)."""
        if self._active is None:
            with torch.no_grad():
                self._active = self._count(self.margin, inclusive=False)
        return self._active

    def _count(self, margin: float, inclusive: bool) -> tuple[Tensor, Tensor]:
        """Per positive the negatives nearer than d_ap + margin, per negative such positives; both (B, R)."""
        placed = self.separation - self._reference
        if placed.numel() * placed.shape[1] <= _SMALL:
            return self._count_directly(placed, placed + margin, inclusive)
        nearest, order = placed.masked_fill(self.negative.logical_not(), torch.inf).sort(dim=1)
        reached = torch.searchsorted(nearest, (placed + margin).contiguous(), right=inclusive)
        of_positive = reached * self.positive
        # a negative of rank r is active for the positives that reach beyond r
        width = placed.shape[1]
        reach = torch.zeros(len(placed), width + 1, dtype=torch.int64, device=placed.device)
        reach = reach.scatter_add(1, of_positive, self.positive.long())
        beyond = self.positive.sum(1, keepdim=True) - reach.cumsum(1).narrow(1, 0, width)
        of_negative = torch.zeros_like(of_positive).scatter(1, order, beyond) * self.negative
        return of_positive, of_negative

    def _count_directly(self, placed: Tensor, reach: Tensor, inclusive: bool) -> tuple[Tensor, Tensor]:
        """The same for a small batch, whose triplets compare faster than they sort."""
        reach = reach.masked_fill(self.positive.logical_not(), -torch.inf).unsqueeze(2)
        placed = placed.masked_fill(self.negative.logical_not(), torch.inf).unsqueeze(1)
        active = reach >= placed if inclusive else reach > placed
        return active.sum(2), active.sum(1)


class SumTripletsTerm(AllTripletsTerm):
    """One value per positive pair plus one per negative pair, over all triplets: a weighted sum of pairs.

    of_positives, of_negatives: matrices (B, R) of non-negative values.
    """

    def __init__(
        self,
        of_positives: Tensor,
        of_negatives: Tensor,
        positive: Tensor,
        negative: Tensor,
        divisor: Tensor | None,
    ) -> None:
        super().__init__(positive, negative)
        self.of_positives, self.of_negatives, self.divisor = of_positives, of_negatives, divisor

    def values_of(self, triplets: TripletIndices) -> Tensor:
        """The sums (T,) of given triplets."""
        anchors, positives, negatives = triplets
        return self.of_positives[anchors, positives] + self.of_negatives[anchors, negatives]

    def sum(self) -> Tensor:
        """Sum over all triplets."""
        return self._row_sums().sum()

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of each anchor's values."""
        return self._row_sums(), self.triplets_per_anchor()

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Tensor | int]:
        """Sum and number of the values strictly between low and high; but for (0, None), by writing out."""
        if low != 0 or high is not None:
            return self.to_indexed().between(low, high)
        at_zero = (self.positive & (self.of_positives <= 0)).sum(1) * (
            self.negative & (self.of_negatives <= 0)
        ).sum(1)
        return self.sum(), (self.triplets_per_anchor() - at_zero).sum()

    def _row_sums(self) -> Tensor:
        dtype = self.of_positives.dtype
        positive, negative = self.positive.to(dtype), self.negative.to(dtype)
        of_positives = (self.of_positives * positive).sum(1) * negative.sum(1)
        return of_positives + (self.of_negatives * negative).sum(1) * positive.sum(1)


_SMALL = 1 << 16  # comparisons, about a batch of 40


def _farthest(separation: Tensor, positive: Tensor) -> Tensor:
    """The largest distance of each row's positives, 0 without any, (B, 1)."""
    if separation.numel() == 0:
        return separation.new_zeros(len(separation), 1)
    largest = separation.masked_fill(positive.logical_not(), -torch.inf).amax(1, keepdim=True)
    return largest.masked_fill(largest == -torch.inf, 0.0)
