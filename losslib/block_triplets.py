"""Triplet values that have no shortcut, summed over blocks of anchors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from losslib.all_triplets import AllTripletsTerm
from losslib.precision import values_are_known
from losslib.softmax import softplus
from losslib.types import TripletIndices


class BlockTripletsTerm(AllTripletsTerm):
    """Triplet values with no shortcut (smooth, or swapped), summed over blocks of anchors.

    Nothing larger than a block is kept: each is computed again for its gradient.

    Args:
        separation: distances (B, R), a similarity negated.
        between_references: distances (R, R) for the swap, or None.
        smooth: log(1 + exp(x)) instead of max(0, x).
    """

    def __init__(
        self,
        separation: Tensor,
        positive: Tensor,
        negative: Tensor,
        margin: float,
        between_references: Tensor | None,
        smooth: bool,
    ) -> None:
        super().__init__(positive, negative)
        self.separation, self.margin, self.smooth = separation, margin, smooth
        self.between_references = between_references
        self._columns = columns_of(positive)

    def _values(self, near: Tensor, far: Tensor) -> Tensor:
        """The values of triplets at these distances of positive and negative."""
        violation = near - far + self.margin
        return softplus(violation) if self.smooth else violation.relu()

    def values_of(self, triplets: TripletIndices) -> Tensor:
        """The values (T,) of given triplets."""
        anchors, positives, negatives = triplets
        far = self.separation[anchors, negatives]
        if self.between_references is not None:
            far = torch.minimum(far, self.between_references[positives, negatives])
        return self._values(self.separation[anchors, positives], far)

    def sum(self) -> Tensor:
        """Sum over all triplets."""
        return self._fold(_same).sum()

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of each anchor's values."""
        return self._fold(_same), self.triplets_per_anchor()

    def between(self, low: float | None, high: float | None) -> tuple[Tensor, Tensor]:
        """Sum and number of the values strictly between low and high."""

        def inside(values: Tensor) -> Tensor:
            kept = torch.ones_like(values, dtype=torch.bool)
            kept = kept if low is None else kept & (values > low)
            return (kept if high is None else kept & (values < high)).to(values.dtype)

        sums = self._fold(lambda values: values * inside(values))
        with torch.no_grad():
            counts = self._fold(inside)
        return sums.sum(), counts.long().sum()

    def _fold(self, of: Callable[[Tensor], Tensor]) -> Tensor:
        """Row sums (B,) of a function of the values, block by block."""
        sums = []
        for start, length in self._blocks():
            parts = (self.separation, self._columns, self.positive.sum(1), self.negative)
            block: Any = (*(part.narrow(0, start, length) for part in parts), self.between_references, of)
            if length < len(self.separation) and torch.is_grad_enabled():
                sums.append(checkpoint(self._block, *block, use_reentrant=False, preserve_rng_state=False))
            else:
                sums.append(self._block(*block))
        return torch.cat(sums) if sums else self.separation.sum(1)

    def _block(
        self,
        separation: Tensor,  # (b, R)
        columns: Tensor,  # (b, m): the positives' columns, then filler
        positives: Tensor,  # (b,): how many of them are positives
        negative: Tensor,  # (b, R)
        between_references: Tensor | None,  # (R, R)
        of: Callable[[Tensor], Tensor],
    ) -> Tensor:
        near = separation.gather(1, columns).unsqueeze(2)
        far = separation.unsqueeze(1)
        if between_references is not None:
            swapped = between_references.index_select(0, columns.flatten())
            far = torch.minimum(far, swapped.view(*columns.shape, between_references.shape[1]))
        values = of(self._values(near, far))  # (b, m, R)
        dtype = separation.dtype
        over_negatives = (values @ negative.to(dtype).unsqueeze(2)).squeeze(2)  # (b, m)
        place = torch.arange(columns.shape[1], device=columns.device)
        return (over_negatives * (place < positives.unsqueeze(1)).to(dtype)).sum(1)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """First row and number of rows of each block."""
        rows, width = self.separation.shape
        largest = max(_BLOCK, 4 * rows * width)
        step = max(1, largest // max(1, self._columns.shape[1] * width))
        return ((start, min(step, rows - start)) for start in range(0, rows, step))


def _same(values: Tensor) -> Tensor:
    return values


_BLOCK = 1 << 16  # values in memory at a time, or four matrices where that is more


def columns_of(positive: Tensor) -> Tensor:
    """The columns of each row's positives first, (B, m) with m the most positives of a row."""
    rows, width = positive.shape
    most = int(positive.sum(1).max()) if rows and values_are_known(positive) else width
    place = torch.where(positive, positive.cumsum(1) - 1, most)
    columns = torch.arange(width, device=positive.device).expand(rows, width)
    placed = torch.zeros(rows, most + 1, dtype=torch.int64, device=positive.device)
    return placed.scatter(1, place, columns).narrow(1, 0, most)
