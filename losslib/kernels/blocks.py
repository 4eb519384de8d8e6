"""Blocks of a distance matrix in sorted order, in the precision they need.

Single precision is enough while no pair is near; from the first block with a near pair on, distances are
taken in double precision and the nearest from direct differences.
"""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.distances.exact import distances_by_difference
from losslib.kernels.matrix import NARROW, NEAR
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import take
from losslib.kernels.sorted_rows import BLOCK, Block, SortedRows

FAR = 1e30  # squared distance, or minus a similarity, of entries that are no pairs


class Precision:
    """Rows, norms and accumulated pulls in one precision."""

    def __init__(self, rows: Tensor, of: Rows, sides: int) -> None:
        self.rows = rows
        self.unit = of.narrow is not None  # whether all squares are 1
        self.squares = of.squares(rows)
        self.largest = 1.0 if self.unit else float(self.squares.max())
        self.pulls = [take(*rows.shape, dtype=rows.dtype).zero_() for _ in range(sides)]
        self.totals = [rows.new_zeros(len(rows)) for _ in range(sides)]  # of the weights of each row


class DistanceBlocks:
    """Blocks of Euclidean distances or of similarities between sorted rows, with what they pull on the rows.

    sides: how many pulls are kept apart. upper: whether only pairs with the second row after the first are
    wanted; others are far. Else only the diagonal is far. block: the most rows of a block.
    """

    def __init__(
        self, rows: SortedRows, distance: Distance, sides: int, upper: bool, block: int = BLOCK
    ) -> None:
        self.sorted, self.inverted, self.upper = rows, distance.is_inverted, upper
        self.radial = not self.inverted and not distance.normalize_embeddings
        self.sides = sides
        given = rows.rows.given
        self.double = given.dtype == torch.float64
        self.limit = 1e-4 if self.double else 1e-6  # below it a product in double precision is not enough
        self.single: Precision | None = None
        self.exact: Precision | None = None
        if self.inverted or not (self.double or given.shape[1] <= NARROW):
            self.single = Precision(self._own(), rows.rows, sides)
        width = len(rows) * block
        self.buffer = take(width, dtype=given.dtype)
        outside = torch.ones(block, block, dtype=given.dtype, device=given.device)
        outside = outside.tril() if upper else outside.tril().triu()
        self.outside = outside.mul_(-FAR if self.inverted else FAR)

    def _own(self) -> Tensor:
        rows = self.sorted.rows
        return rows.unit if not self.radial else self._centred().to(rows.given.dtype)

    def _centred(self) -> Tensor:
        wide = self.sorted.rows.wide
        return wide - wide.mean(0) if self.radial else wide

    def of(self, block: Block) -> tuple[Tensor, Precision]:
        """Values (b, columns) of a block, from its first row on (`upper`) or of all columns."""
        if self.single is not None:
            found = self._single(self.single, block)
            if found is not None:
                return found, self.single
            self.single_used, self.single = self.single, None
        if self.exact is None:
            self.exact = Precision(self._centred(), self.sorted.rows, self.sides)
        return self._exactly(self.exact, block), self.exact

    single_used: Precision | None = None

    def _first(self, block: Block) -> int:
        return block.start if self.upper else 0

    def _put_far(self, values: Tensor, block: Block) -> None:
        size, at = block.stop - block.start, block.start - self._first(block)
        values[:, at : at + size].add_(self.outside[:size, :size])

    def _single(self, at: Precision, block: Block) -> Tensor | None:
        own, others = at.rows[block.start : block.stop], at.rows[self._first(block) :]
        out = self.buffer[: len(own) * len(others)].view(len(own), len(others))
        if self.inverted:
            torch.mm(own, others.t(), out=out)
            self._put_far(out, block)
            return out
        if at.unit:
            torch.addmm(own.new_full((1,), 2.0), own, others.t(), alpha=-2.0, out=out)
        else:
            torch.addmm(at.squares[self._first(block) :], own, others.t(), alpha=-2.0, out=out)
            out.add_(at.squares[block.start : block.stop].unsqueeze(1))
        self._put_far(out, block)
        return out.sqrt_() if out.amin().item() > 2 * NEAR * at.largest else None

    def _exactly(self, at: Precision, block: Block) -> Tensor:
        own, others = at.rows[block.start : block.stop], at.rows[self._first(block) :]
        squared = torch.addmm(at.squares[self._first(block) :], own, others.t(), alpha=-2.0)
        squared.add_(at.squares[block.start : block.stop].unsqueeze(1))
        self._put_far(squared, block)
        limit = 2 * self.limit * at.largest
        found = torch.threshold(squared, limit, 0.0)
        near = squared.numel() - int(torch.count_nonzero(found))
        found.sqrt_()
        if near * 16 > squared.numel():
            found = distances_by_difference(own, others)
            self._put_far(found, block)
        elif near:
            first, second = (squared <= limit).nonzero(as_tuple=True)
            found[first, second] = torch.linalg.vector_norm(own[first] - others[second], dim=1)
        return found

    def pull(self, at: Precision, side: int, block: Block, weight: Tensor, first: int) -> None:
        """Add what weights (b, w) of the pairs with the columns from `first` on pull on both rows of each."""
        stop = first + weight.shape[1]
        own, others, pulls = at.rows[block.start : block.stop], at.rows[first:stop], at.pulls[side]
        pulls[block.start : block.stop].addmm_(weight, others)
        pulls[first:stop].addmm_(weight.t(), own)
        if self.radial:
            at.totals[side][block.start : block.stop].add_(weight.sum(1))
            at.totals[side][first:stop].add_(weight.sum(0))

    def gradient(self, factors: list[float]) -> Tensor:
        """The gradient by the embeddings: the pulls times a factor each."""
        total: Tensor | None = None
        for at in (self.single or self.single_used, self.exact):
            if at is None:
                continue
            for pull, weights, factor in zip(at.pulls, at.totals, factors, strict=True):
                part = pull.mul_(factor if self.inverted else -factor)
                if self.radial:
                    part = part.addcmul_(at.rows, weights.unsqueeze(1), value=factor)
                total = (
                    part if total is None else total.add_(part) if total.dtype == part.dtype else total + part
                )
        assert total is not None
        return self.sorted.back(total)
