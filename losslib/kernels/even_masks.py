"""Classes of one size: rows in the order of their labels, whose positive pairs are blocks along the diagonal.

What is asked of the positive pairs alone is then asked of few entries, and neither a mask of the whole matrix
is made nor labels compared.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.masks import Masks
from losslib.kernels.reduce import Number
from losslib.kernels.scratch import take


class EvenMasks(Masks):
    """The masks of a batch with itself, on the CPU, that has k classes of m rows each, one after the other.

    Attributes:
        places: of the rows given, (B,), among those in order.
    """

    ordered = True

    def __init__(self, batch: Batch, order: Tensor, size: int) -> None:
        super().__init__(batch, known=True)
        self.size, self.rows = size, len(order)
        self._blocks = (self.rows // size, size, size)
        self._strides = (size * (self.rows + 1), self.rows, 1)
        self.places = torch.empty_like(order).scatter_(0, order, _counted(self.rows))

    def _compared(self, equal: bool) -> Tensor:
        mask = take(self.rows, self.rows, dtype=self.dtype).fill_(float(not equal))
        self.within(mask).fill_(float(equal))
        return mask

    def keep_negatives(self, matrix: Tensor, out: Tensor) -> Tensor:
        """The matrix with 0 in place of every entry that is no negative pair, in `out`."""
        if out is not matrix:
            out.copy_(matrix)
        self.within(out).zero_()
        return out

    @property
    def positives(self) -> Tensor:
        """Number of positives of each anchor, (B,)."""
        return _full(float(self.size - 1), self.rows, self.dtype)

    @property
    def alike(self) -> tuple[float, float]:
        """Numbers of positives and negatives of every anchor."""
        return float(self.size - 1), float(self.rows - self.size)

    @property
    def has_positives(self) -> None:
        """None: all have some."""

    @property
    def has_negatives(self) -> None:
        """None: all have some."""

    @property
    def near(self) -> Tensor:
        """1 for a row of the class and 0 for the row itself, (m, m)."""
        return _others(self.size, self.dtype)

    def within(self, matrix: Tensor) -> Tensor:
        """The part (k, m, m) of a matrix in which rows and columns are of one class."""
        return matrix.as_strided(self._blocks, self._strides)

    def taken(self, matrix: Tensor) -> Tensor:
        """A copy of it."""
        return take(*self._blocks, dtype=matrix.dtype).copy_(self.within(matrix))

    def column(self, of_rows: Tensor) -> Tensor:
        """One number a row (B,), as it goes with the rows of such a part."""
        return of_rows.view(-1, self.size, 1)

    def row(self, of_rows: Tensor) -> Tensor:
        """One number a row (B,), as it goes with the columns of such a part."""
        return of_rows.view(-1, 1, self.size)

    def sums(self, part: Tensor) -> Tensor:
        """The sums (B,) over the rows of such a part."""
        return part.sum(2).view(-1)

    def largest(self, part: Tensor) -> Tensor:
        """The largest (B,) of each row of such a part."""
        return part.amax(2).view(-1)

    def split_(self, matrix: Tensor, own: bool) -> tuple[Tensor, Tensor]:
        """Right pairs, as such a part, and wrong ones of a matrix that is 0 where there is no pair."""
        return self.taken(matrix), self.keep_negatives_(matrix)

    def difference_(self, near: Tensor, by_near: Number, far: Tensor, by_far: Number) -> tuple[Tensor, float]:
        """(by_near * near - by_far * far) times a number, in the place of far, and that number.

        No anchor is without pairs, so that neither factor is 0.
        """
        assert isinstance(by_near, float)
        assert isinstance(by_far, float)
        torch.mul(near, -by_near / by_far, out=self.within(far))
        return far, -1 / by_far


def even_masks(batch: Batch, x: Tensor) -> EvenMasks | None:
    """The masks of a batch with itself in the order of its labels; None unless all classes are of one size.

    batch: with labels that are whole numbers. x: its embeddings (B, D). The batch of these masks has its rows
    in that order. There are two classes at least, of two rows or more.
    """
    labels = batch.labels
    assert labels is not None
    classes = len(set(labels.tolist()))
    size, rest = divmod(len(labels), classes)
    if rest or size == 1 or classes == 1:
        return None
    labels, order = labels.sort(stable=True)
    if not torch.equal(labels[::size], labels[size - 1 :: size]):  # as many rows, but not of each class
        return None
    rows = torch.index_select(x, 0, order, out=take(*x.shape, dtype=x.dtype))
    return EvenMasks(replace(batch, embeddings=rows, labels=labels), order, size)


@lru_cache(maxsize=8)  # each of m^2 entries
def _others(size: int, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return 1 - torch.eye(size, dtype=dtype, device="cpu")


@lru_cache(maxsize=64)
def _full(value: float, rows: int, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.full((rows,), value, dtype=dtype, device="cpu")


@lru_cache(maxsize=64)
def _counted(rows: int) -> Tensor:
    with torch.inference_mode(False):
        return torch.arange(rows, device="cpu")
