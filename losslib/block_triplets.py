"""Triplet values that have no shortcut, summed over blocks of anchors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from losslib.all_triplets import AllTripletsTerm
from losslib.precision import transforming, values_are_known
from losslib.softmax import softplus
from losslib.types import TripletIndices


class TripletBlock(NamedTuple):
    """Some anchors with some of their positives and all negatives, and three blocks of memory."""

    near: Tensor  # (b, k)
    far: Tensor  # (b, R)
    kept: Tensor  # (b, k): 1 for a positive, 0 for filler
    negative: Tensor  # (b, R): 1 for a negative
    first: Tensor  # (b, k, R), as the next two
    second: Tensor
    third: Tensor

    def over_negatives(self, values: Tensor) -> Tensor:
        """The sums over the negatives, (b, k)."""
        return torch.bmm(values, self.negative.unsqueeze(2)).squeeze(2)

    def over_positives(self, values: Tensor) -> Tensor:
        """The sums over the positives, (b, R), 0 for what is no negative."""
        return torch.bmm(self.kept.unsqueeze(1), values).squeeze(1).mul_(self.negative)


Slopes = tuple[Tensor, Tensor, Tensor]  # sums (b,), and their slopes by near (b, k) and by far (b, R)


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
        return self._row_sums().sum()

    def per_anchor(self, rows: int) -> tuple[Tensor, Tensor]:
        """Sum and number of each anchor's values."""
        return self._row_sums(), self.triplets_per_anchor()

    def summed(self, block: TripletBlock) -> Slopes:
        """The sums of a block, by the memory it is given; where `has_sums` says so."""
        excess = torch.sub((block.near + self.margin).unsqueeze(2), block.far.unsqueeze(1), out=block.first)
        sums = block.over_negatives(softplus(excess)).mul_(block.kept)
        chance = excess.sigmoid_()
        by_near = block.over_negatives(chance).mul_(block.kept)
        return sums.sum(1), by_near, block.over_positives(chance).neg_()

    @property
    def has_sums(self) -> bool:
        """Whether `summed` gives the sums."""
        return self.smooth and self.between_references is None

    def _row_sums(self) -> Tensor:
        if not self.has_sums or transforming() or not values_are_known(self.separation):
            return self._fold(_same)
        sums: Tensor = _RowSums.apply(self.separation, self)
        return sums

    def quick_blocks(self) -> Iterator[tuple[slice, Tensor, TripletBlock]]:
        """Blocks with their rows and the columns (b, k) of their positives."""
        separation, columns, dtype = self.separation.detach(), self._columns, self.separation.dtype
        place = torch.arange(columns.shape[1], device=columns.device)
        kept = (place < self.positive.sum(1, keepdim=True)).to(dtype)
        negative, near = self.negative.to(dtype), separation.gather(1, columns)
        (rows, width), most = separation.shape, columns.shape[1]
        step, part = max(1, _QUICK // max(1, most * width)), max(1, min(most, _QUICK // max(1, width)))
        memory = separation.new_empty(3, min(step, max(rows, 1)) * part * width)
        for at in range(0, rows, step):
            for first in range(0, most, part):
                here, chosen = slice(at, at + step), slice(first, first + part)
                own = near[here, chosen]
                shape = (*own.shape, width)
                buffers = [held[: own.numel() * width].view(shape) for held in memory]
                block = TripletBlock(own, separation[here], kept[here, chosen], negative[here], *buffers)
                yield here, columns[here, chosen], block

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


class _RowSums(torch.autograd.Function):
    """Sums of each anchor's values with their slopes, in one pass."""

    @staticmethod
    def forward(ctx: Any, separation: Tensor, term: BlockTripletsTerm) -> Tensor:
        sums, slopes = separation.new_zeros(len(separation)), torch.zeros_like(separation)
        for rows, columns, block in term.quick_blocks():
            part, by_near, by_far = term.summed(block)
            sums[rows] += part
            slopes[rows] += by_far
            slopes[rows].scatter_add_(1, columns, by_near)
        ctx.term = term
        ctx.save_for_backward(separation, slopes)
        return sums

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        separation, slopes = ctx.saved_tensors
        if not torch.is_grad_enabled():
            return slopes * grads[0].unsqueeze(1), None
        sums = ctx.term._fold(_same)  # this is to be differentiated again
        # the product, not grad_outputs: for those torch imports sympy, 30 MB of the process
        return torch.autograd.grad((sums * grads[0]).sum(), separation, create_graph=True)[0], None


def _same(values: Tensor) -> Tensor:
    return values


_BLOCK = 1 << 16  # values in memory at a time, or four matrices where that is more
_QUICK = 1 << 18  # where the slopes are written out: what stays in the cache


def columns_of(positive: Tensor, counts: Tensor | None = None) -> Tensor:
    """The columns of each row's positives first, (B, m) with m the most positives of a row.

    counts: the number of positives of each row, where it is at hand.
    """
    rows, width = positive.shape
    if rows and values_are_known(positive):
        most = int((positive.sum(1) if counts is None else counts).max())
    else:
        most = width
    place = positive.cumsum(1).mul_(positive)  # from 1 on; place 0 takes the others and is cut off
    columns = torch.arange(width, device=positive.device).expand(rows, width)
    placed = torch.zeros(rows, most + 1, dtype=torch.int64, device=positive.device)
    return placed.scatter_(1, place, columns).narrow(1, 1, most)
