"""The masks of a batch's pairs as numbers, with what the dense forms ask of them, made when asked for."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.reduce import Number
from losslib.kernels.scratch import take
from losslib.pair_matrix import batch_masks

_FEW = 80**2  # comparisons up to which whole numbers need not be made floating ones first


class Masks:
    """Masks (B, R) of positive and negative pairs, 1 or 0, in the embeddings' dtype.

    Attributes:
        known: whether values may be looked at without waiting for a device.
        symmetric: whether the batch is compared with itself, so that both masks are symmetric.
        whole: whether every entry is a pair, but for a batch's own diagonal.
        ordered: whether the rows, of a batch with itself, are in the order of their labels.
    """

    ordered = False

    def __init__(self, batch: Batch, known: bool) -> None:
        x, labels, others = batch.embeddings, batch.labels, batch.reference_labels
        assert labels is not None
        assert others is not None
        self.dtype = x.dtype
        self.known = known
        self.symmetric = batch.ref_emb is None
        self.whole = batch.own is None and not labels.is_floating_point()
        self.batch, self.labels, self.others = batch, labels, others
        self._same: Tensor | None = None  # 1 for rows of the same label, until `positive` takes its place
        self._positive: Tensor | None = None
        self._negative: Tensor | None = None
        self._positives: Tensor | None = None
        self._numbered = False

    def _as_numbers(self) -> None:
        """Labels as floating numbers where they compare the same: with those a mask is quickest."""
        labels = self._numbers(self.labels)
        others = labels if self.symmetric or labels is None else self._numbers(self.others)
        if labels is not None and others is not None:
            self.labels, self.others = labels, others

    def _numbers(self, labels: Tensor) -> Tensor | None:
        """Whole numbers as floating ones, None where those could not tell all of them apart."""
        numbers = labels.to(self.dtype)
        if labels.dtype in (torch.int64, torch.int32) and labels.shape[0]:
            largest = 2**24 if self.dtype == torch.float32 else 2**53
            low, high = torch.aminmax(numbers)
            if not -largest < low.item() <= high.item() < largest:
                return None
        return numbers

    @property
    def positive(self) -> Tensor:
        """The mask of the positive pairs."""
        if self._positive is None:
            self._make()
        assert self._positive is not None
        return self._positive

    @property
    def negative(self) -> Tensor:
        """The mask of the negative pairs."""
        if self._negative is None:
            if not self.whole:
                self._make()
            else:
                self._negative = self._compared(equal=False)
        assert self._negative is not None
        return self._negative

    @property
    def with_own(self) -> bool:
        """Whether each anchor has a place of its own among the references."""
        return self.symmetric or (self.batch.among_itself and self.batch.own is not None)

    @property
    def positive_or_own(self) -> Tensor:
        """The mask of the positive pairs and of each anchor's own place."""
        if self.whole and self.symmetric:
            return self._compared(equal=True)
        own = self.batch.itself
        return self.positive if own is None else self.positive + own.to(self.dtype)

    def _make(self) -> None:
        if self.whole:
            mask = self._compared(equal=True) if self._same is None else self._same
            self._positive = mask.fill_diagonal_(0) if self.symmetric else mask
        else:
            positive, negative = batch_masks(self.batch)
            self._positive, self._negative = positive.to(self.dtype), negative.to(self.dtype)

    def _compared(self, equal: bool) -> Tensor:
        if not self._numbered and self.known and self.labels.shape[0] * self.others.shape[0] > _FEW:
            self._as_numbers()
            self._numbered = True
        own, others = self.labels.unsqueeze(1), self.others
        compare = torch.eq if equal else torch.ne
        if not self.known:
            return compare(own, others).to(self.dtype)
        return compare(own, others, out=take(own.shape[0], others.shape[0], dtype=self.dtype))

    def keep_pairs_(self, matrix: Tensor) -> Tensor:
        """The matrix with 0 in place of every entry that is no pair."""
        if not self.whole:
            return matrix.mul_(self.positive + self.negative)
        return matrix.fill_diagonal_(0) if self.symmetric else matrix

    def keep_negatives(self, matrix: Tensor, out: Tensor) -> Tensor:
        """The matrix, of finite numbers, with 0 in place of every entry that is no negative pair, in `out`.

        It needs no mask of the negatives, and least time where `positive` is asked for only later.
        """
        if not self.whole:
            return torch.mul(matrix, self.negative, out=out)
        if self._positive is not None:
            return self.keep_pairs_(torch.addcmul(matrix, matrix, self._positive, value=-1, out=out))
        if self._same is None:
            self._same = self._compared(equal=True)
        return torch.addcmul(matrix, matrix, self._same, value=-1, out=out)

    def keep_negatives_(self, matrix: Tensor) -> Tensor:
        """The same in place of the matrix."""
        return self.keep_negatives(matrix, matrix)

    @property
    def near(self) -> Tensor:
        """1 for the positive pairs of what `within` gives, else 0."""
        return self.positive

    def within(self, matrix: Tensor) -> Tensor:
        """The part of a matrix that its positive pairs lie in: all of it."""
        return matrix

    def taken(self, matrix: Tensor) -> Tensor:
        """The same, which stays as it is when `keep_negatives` writes elsewhere."""
        return matrix

    def column(self, of_rows: Tensor) -> Tensor:
        """One number a row (B,), as it goes with the rows of such a part."""
        return of_rows.unsqueeze(1)

    def row(self, of_rows: Tensor) -> Tensor:
        """One number a row (B,), as it goes with the columns of such a part."""
        return of_rows

    def sums(self, part: Tensor) -> Tensor:
        """The sums (B,) over the rows of such a part."""
        return part.sum(1)

    def largest(self, part: Tensor) -> Tensor:
        """The largest (B,) of each row of such a part."""
        return part.amax(1)

    def split_(self, matrix: Tensor, own: bool) -> tuple[Tensor, Tensor]:
        """Right and wrong pairs of a matrix that is 0 where there is no pair.

        own: whether a row's own place is a right one.
        """
        near = (self.positive_or_own if own else self.positive).mul_(matrix)
        return near, matrix.sub_(near)

    def difference_(self, near: Tensor, by_near: Number, far: Tensor, by_far: Number) -> tuple[Tensor, float]:
        """(by_near * near - by_far * far) times a number, in the place of near or far, and that number."""
        return reduce.difference_(near, by_near, far, by_far)

    def both(self, of_rows: Tensor, out: Tensor) -> Tensor:
        """One number a row (B,) for the entries of such a part, or in `out` that of both orders of a pair."""
        column = self.column(of_rows)
        return torch.add(column, self.row(of_rows), out=out) if self.symmetric else column

    @property
    def positives(self) -> Tensor:
        """Number of positives of each anchor, (B,)."""
        if self._positives is None:
            self._positives = self.positive.sum(1)
        return self._positives

    @property
    def negatives(self) -> Tensor:
        """Number of negatives of each anchor, (B,)."""
        if self.whole:
            return self.others.shape[0] - int(self.symmetric) - self.positives
        return self.negative.sum(1)

    @property
    def alike(self) -> tuple[float, float] | None:
        """Numbers of positives and negatives where every anchor is known to have as many, else None."""
        if not (self.whole and self.known and len(self.labels)):
            return None
        least, most = torch.aminmax(self.positives)
        number = least.item()
        if number != most.item():
            return None
        return number, self.others.shape[0] - int(self.symmetric) - number

    @property
    def has_positives(self) -> Tensor | None:
        """1 for the anchors with positives, (B,); None where all are known to have some."""
        return self.some(self.positives)

    @property
    def has_negatives(self) -> Tensor | None:
        """1 for the anchors with negatives, (B,); None where all are known to have some."""
        others = self.others.shape[0] - int(self.symmetric)
        if self.whole and self.known and others and self.positives.amax().item() < others:
            return None
        return self.some(self.negatives)

    @property
    def has_pairs(self) -> Tensor | None:
        """1 for the anchors with any pair, (B,); None where all are known to have some."""
        if self.whole and self.others.shape[0] > int(self.symmetric):
            return None
        return self.some(self.positives + self.negatives)

    def some(self, count: Tensor) -> Tensor | None:
        """1 where something (B,) is above 0; None where it is known to be everywhere."""
        if self.known and count.shape[0] and count.amin().item() > 0:
            return None
        return (count > 0).to(self.dtype)
