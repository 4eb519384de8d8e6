"""Distances between sorted rows: those of the positive pairs, and blocks of the whole matrix.

Single precision is enough while no pair is near. Where positives are near, their own distances alone are
taken in double precision, the nearest from direct differences; so is every block from the first on in which
other pairs are near.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.distances.exact import roots
from losslib.kernels.matrix import NARROW, NEAR
from losslib.kernels.positives import Positives
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import constant, take
from losslib.kernels.sorted_rows import Block, SortedRows

FAR = 1e30  # squared distance, or minus a similarity, of entries that are no pairs


class Precision:
    """Rows, norms and accumulated pulls in one precision."""

    def __init__(self, rows: Tensor, of: Rows, radial: bool) -> None:
        self.rows = rows
        self.unit = of.narrow is not None  # whether all squares are 1
        self._of = of
        self.largest = 1.0 if self.unit else float(self.squares.max())
        self.pulls = take(*rows.shape, dtype=rows.dtype).zero_()
        self.totals = rows.new_zeros(rows.shape[0]) if radial else None  # of the weights of each row

    @cached_property
    def squares(self) -> Tensor:
        """The squared norms (N,)."""
        return self._of.squares(self.rows)


class DistanceBlocks:
    """Blocks of Euclidean distances or of similarities between sorted rows, with what they pull on the rows.

    In memory blocks of all pairs have a column for each of their rows.

    negatives: whether only negative pairs are wanted, each once but for those within a block, which come in
        both orders; others are far. Else all pairs are, and only a row is far from itself.
    block: the most rows of a block.
    """

    def __init__(self, rows: SortedRows, distance: Distance, negatives: bool, block: int) -> None:
        self.sorted, self.inverted, self.negatives = rows, distance.is_inverted, negatives
        self.radial = not self.inverted and not distance.normalize_embeddings
        given = rows.rows.given
        self.double = given.dtype == torch.float64
        self.limit = 1e-4 if self.double else 1e-6  # below it a product in double precision is not enough
        self.single: Precision | None = None
        self.exact: Precision | None = None
        if self.inverted or not (self.double or given.shape[1] <= NARROW):
            self.single = Precision(self._own(), rows.rows, self.radial)
        self.single_used = self.single
        self.buffer = take(len(rows) * block, dtype=given.dtype)

    def _own(self) -> Tensor:
        rows = self.sorted.rows
        return rows.unit if not self.radial else self._centred().to(rows.given.dtype)

    def _centred(self) -> Tensor:
        wide = self.sorted.rows.wide
        return wide - wide.mean(0) if self.radial else wide

    def of(self, block: Block, reach: float | None = None) -> tuple[Tensor | None, Precision]:
        """Values (b, columns) of a block, from its first row on (`negatives`) or of all columns.

        reach: distance or similarity that pairs must come up to for the block to matter: else None.
        """
        if self.single is not None:
            found, nearest = self._single(self.single, block, reach)
            if self.inverted:
                return found if reach is None or nearest >= reach else None, self.single
            if nearest > 2 * NEAR * self.single.largest:
                # the square of a distance just within reach may be rounded up
                within = reach is None or nearest <= max(reach, 0.0) ** 2 * (1 + 1e-6)
                return found.sqrt_() if within else None, self.single
            self.single = None
        if self.exact is None:
            self.exact = Precision(self._centred(), self.sorted.rows, self.radial)
        return self._exactly(self.exact, block), self.exact

    def _first(self, block: Block) -> int:
        return block.start if self.negatives else 0

    def _put_far(self, values: Tensor, block: Block) -> None:
        far = -FAR if self.inverted else FAR
        if self.negatives:
            self.sorted.put(far, values, block, block.start)
        else:
            values.diagonal(block.start).fill_(far)

    def _single(self, at: Precision, block: Block, reach: float | None) -> tuple[Tensor, float]:
        """Squared distances or similarities of a block, and the least or largest of them."""
        first = self._first(block)
        own, others = at.rows[block.start : block.stop], at.rows[first:]
        out = self._room(len(own), len(others))
        if self.inverted:
            torch.mm(own, others.t(), out=out)
            self._put_far(out, block)
            return out, 0.0 if reach is None else out.amax().item()
        squares = constant(2.0, own) if at.unit else at.squares[first:]
        torch.addmm(squares, own, others.t(), alpha=-2.0, out=out)
        if not at.unit:
            out.add_(at.squares[block.start : block.stop].unsqueeze(1))
        self._put_far(out, block)
        return out, out.amin().item()

    def _room(self, rows: int, columns: int) -> Tensor:
        room = self.buffer[: rows * columns]
        return room.view(rows, columns) if self.negatives else room.view(columns, rows).t()

    def _exactly(self, at: Precision, block: Block) -> Tensor:
        own, others = at.rows[block.start : block.stop], at.rows[self._first(block) :]
        squared = torch.addmm(at.squares[self._first(block) :], own, others.t(), alpha=-2.0)
        squared.add_(at.squares[block.start : block.stop].unsqueeze(1))
        self._put_far(squared, block)
        found = roots(squared, 2 * self.limit * at.largest, own, others)
        self._put_far(found, block)  # which may have been near beside the largest
        return found

    def pull(self, at: Precision, block: Block, weight: Tensor) -> None:
        """Add what weights (b, columns) of a block's pairs pull on both rows of each, overwriting them."""
        own = at.rows[block.start : block.stop]
        # within a block negatives come in both orders, and so do pulls on its rows
        beyond = block.stop if self.negatives else 0
        others = at.rows[self._first(block) :]
        at.pulls[block.start : block.stop].addmm_(weight, others)
        if at.totals is not None:
            at.totals[block.start : block.stop].add_(weight.sum(1))
        if beyond < len(self.sorted):
            weight = weight[:, beyond - self._first(block) :]
            at.pulls[beyond:].addmm_(weight.t(), own)
            if at.totals is not None:
                at.totals[beyond:].add_(weight.sum(0))

    def gradient(self, times: float, more: Tensor | None = None, by: float = 0.0) -> Tensor:
        """The gradient by the embeddings: the pulls times a number, and `more` (N, D) times another."""
        total: Tensor | None = None
        for at in (self.single_used, self.exact):
            if at is None:
                continue
            part = at.pulls
            if at.totals is not None:
                part = part.addcmul_(at.rows, at.totals.unsqueeze(1), value=-1)
            total = part if total is None else total + part
        if total is None or times == 0:
            total, times = torch.zeros_like(self.sorted.rows.given), 1.0
        if more is not None:
            total.add_(more, alpha=by / times)
        return self.sorted.back(total, times)


class PositiveDistances:
    """Distances (k, r, m) of the positive pairs of some classes."""

    def __init__(self, blocks: DistanceBlocks, some: Positives) -> None:
        self.some, rows = some, blocks.sorted.rows
        self.mask = some.mask(rows.given)
        single = blocks.single_used
        values = None if single is None else self._single(single)
        self.exact = values is None
        self.radial = self.exact or blocks.radial
        self.values = self._exactly(rows.wide, blocks.limit) if values is None else values

    def _squared(self, squares: Tensor) -> Tensor:
        """Squared distances, non-pairs far. squares: of the rows, (k, 1, m), or their sum."""
        out = take(*self.some.shape, dtype=self.own.dtype)
        found = torch.baddbmm(squares, self.own, self.everyone.mT, alpha=-2.0, out=out)
        return found.add_(self.mask.sub(1), alpha=-FAR)

    def _single(self, at: Precision) -> Tensor | None:
        self._take(self.some.everyone(at.rows))
        if at.unit:
            squared = self._squared(constant(2.0, at.rows))
        else:
            squared = self._squared(self.some.everyone(at.squares).unsqueeze(1))
            squared.add_(self.some.anchors(at.squares).unsqueeze(2))
        return squared.sqrt_() if squared.amin().item() > 2 * NEAR * at.largest else None

    def _take(self, everyone: Tensor) -> None:
        some = self.some
        self.everyone = self.own = everyone
        if not some.square:
            self.own = everyone[:, some.first : some.first + some.height]

    def _exactly(self, rows: Tensor, share: float) -> Tensor:
        """In double precision, from the mean of each class."""
        self._take(self.some.everyone(rows) - self.some.means(rows))
        squares = (self.everyone * self.everyone).sum(2)
        own = squares[:, self.some.first : self.some.first + self.some.height]
        squared = self._squared(squares.unsqueeze(1)).add_(own.unsqueeze(2))
        return roots(squared, 2 * share * float(squares.max()), self.own, self.everyone)

    def pull(self, pulls: Tensor, slope: Tensor) -> None:
        """Take off what slopes by the distances (k, r, m), the same in both orders, pull on the anchors."""
        slope = slope.div_(torch.threshold(self.values, 0.0, torch.inf) if self.exact else self.values)
        if not self.radial:
            self.some.add_product(pulls, slope, self.everyone)
            return
        pulled = torch.baddbmm(slope.sum(2, keepdim=True) * self.own, slope, self.everyone, beta=-1.0)
        self.some.add(pulls, pulled.to(pulls.dtype))
