"""SupConLoss, NTXentLoss and DecoupledContrastiveLoss in blocks of whole rows.

Each row takes the exponentials off its own largest logit, for what the symmetric blocks cannot do: any
temperature, dot products without a bound, and references. A row's log-sum-exp depends on that row alone, so
that one pass gives value and gradient, in memory linear in the batch. Rows and references are sorted by their
labels: a block's positives lie in one band of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.function import Found, Inputs
from losslib.kernels.rows import Rows
from losslib.kernels.scratch import lease, take
from losslib.reducers import AvgNonZeroReducer, SumReducer
from losslib.softmax import softplus

_ROWS = 128  # of a block
_FAR = 1e30
_LEAST = -85.0  # exponents below it are slow on some processors, and nothing next to 1


class _Sorted:
    """Rows (N, D) sorted by label, and what pulls on them."""

    def __init__(self, x: Tensor, labels: Tensor, loss: Any, wanted: bool) -> None:
        self.labels, self.order = labels.to(torch.int64).sort(stable=True)
        out = take(*x.shape, dtype=x.dtype)
        self.rows = Rows(torch.index_select(x, 0, self.order, out=out), loss.distance)
        self.unit = self.rows.unit
        self.pulls = take(*x.shape, dtype=x.dtype).zero_() if wanted else None

    def gradient(self, factor: float) -> Tensor | None:
        """The gradient by the rows in their own order: the pulls times a factor."""
        if self.pulls is None:
            return None
        place = torch.empty_like(self.order)
        place[self.order] = torch.arange(len(place))
        return self.rows.back(self.pulls.mul_(factor)).index_select(0, place)


@dataclass
class Part:
    """A block of rows: its logits, the band of its positives among the columns, and counts of each row.

    logits: (b, R), a batch's own places far below everything. same: 1 where a row and a column of the band
    are of one class, an own place included; positive: the same without own places.
    """

    logits: Tensor
    band: slice
    same: Tensor
    positive: Tensor
    positives: Tensor
    has_negatives: Tensor
    own: slice | None = None  # the columns of a batch's own places

    def exponentials(self) -> tuple[Tensor, Tensor]:
        """Each row's largest logit (b, 1), and in the logits' place the exponentials off it."""
        largest = self.logits.amax(1, keepdim=True)
        return largest, self.logits.sub_(largest).clamp_(min=_LEAST, max=0.0).exp_()


OfPart = Callable[[Any, Part], tuple[Tensor, Tensor]]


def sup_con(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """SupConLoss."""
    return _run(loss, x, batch, needs, _sup_con, of_rows=True)


def nt_xent(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """NTXentLoss."""
    return _run(loss, x, batch, needs, _nt_xent, of_rows=False)


def decoupled(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """DecoupledContrastiveLoss without sigma."""
    return _run(loss, x, batch, needs, _decoupled, of_rows=False, with_negatives=True)


def _run(
    loss: Any,
    given: Inputs,
    batch: Batch,
    needs: tuple[bool, ...],
    of: OfPart,
    of_rows: bool,
    with_negatives: bool = False,
) -> Found:
    """The sum of a loss's values over all blocks, reduced, with the gradients.

    of: values, one a row or one a positive of the band, and the slope by the logits, in their place.
    of_rows: which of both. with_negatives: whether positives of rows without negatives give no value.
    """
    assert batch.labels is not None
    x = _Sorted(given.embeddings, batch.labels, loss, needs[0])
    y, apart = x, given.references is not None
    if given.references is not None:
        assert batch.ref_labels is not None
        y = _Sorted(given.references, batch.ref_labels, loss, needs[1])
    first = torch.searchsorted(y.labels, x.labels)
    last = torch.searchsorted(y.labels, x.labels, right=True)
    columns = torch.searchsorted(y.labels, y.labels).to(x.unit.dtype)  # one number a class
    sizes = last - first
    own = torch.where(sizes > 0, first, -1).to(x.unit.dtype)
    starts, ends, scale = first.tolist(), last.tolist(), 1 / loss.temperature
    logits, total, above, number = take(_ROWS * len(y.unit), dtype=x.unit.dtype), 0.0, 0.0, 0.0
    for start in range(0, len(x.unit), _ROWS):
        stop = min(start + _ROWS, len(x.unit))
        here, band = slice(start, stop), slice(starts[start], ends[stop - 1])
        with lease():  # of what one block needs
            part = _part(x.unit[here], y.unit, scale, logits, band, own[here], columns, sizes[here])
            if not apart:
                _without_itself(part, start)
            values, slope = of(loss, part)
            total += float(values.sum(dtype=torch.float64))
            above += float(torch.count_nonzero(values))
            counted = part.positives * part.has_negatives if with_negatives else part.positives
            number += float(torch.count_nonzero(counted) if of_rows else counted.double().sum())
            if x.pulls is not None:
                x.pulls[here].addmm_(slope, y.unit)
            if y.pulls is not None:
                y.pulls.addmm_(slope.t(), x.unit[here])
    each = 1.0
    if type(loss.reducer) is not SumReducer:
        each = 1 / max(above if type(loss.reducer) is AvgNonZeroReducer else number, 1.0)
    value = given.embeddings.new_tensor(total * each)
    if not any(needs):
        return Found(value)
    by_x = x.gradient(each * scale)
    return Found(value, by_x, y.gradient(each * scale) if apart else None)


def _part(
    rows: Tensor,
    others: Tensor,
    scale: float,
    out: Tensor,
    band: slice,
    own: Tensor,
    columns: Tensor,
    sizes: Tensor,
) -> Part:
    logits = out[: len(rows) * len(others)].view(len(rows), len(others))
    torch.mm(rows, others.t(), out=logits).mul_(scale)
    width = max(band.stop - band.start, 0)
    same = take(len(rows), width, dtype=rows.dtype)
    torch.eq(own.unsqueeze(1), columns[band], out=same)
    positives = sizes.to(rows.dtype)
    return Part(logits, band, same, same, positives, (len(others) > sizes).to(rows.dtype))


def _without_itself(part: Part, start: int) -> None:
    """A batch's rows are no pairs of themselves."""
    size = len(part.logits)
    part.own = slice(start, start + size)
    part.logits[:, part.own].fill_diagonal_(-_FAR)
    part.positive = part.same.clone()
    part.positive.diagonal(start - part.band.start).zero_()
    part.positives = part.positives - 1


def _sup_con(loss: Any, part: Part) -> tuple[Tensor, Tensor]:
    present = (part.positives > 0).to(part.same.dtype)
    counts = part.positives.clamp_min(1)
    mean = (part.logits[:, part.band] * part.positive).sum(1) / counts
    largest, share = part.exponentials()
    if part.own is not None:
        share[:, part.own].fill_diagonal_(0)
    sums = share.sum(1)
    values = torch.where(present > 0, sums.log() + largest.squeeze(1) - mean, 0.0)
    if type(loss.reducer) is AvgNonZeroReducer:
        values = values.relu_()
        present = values.sign()
    share.mul_((present / sums.clamp_min(1e-37)).unsqueeze(1))
    share[:, part.band].sub_(part.positive * (present / counts).unsqueeze(1))
    return values, share


def _negatives(part: Part) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The band's logits; log-sum-exp over the negatives (b, 1), far below everything without any; their sums
    of exponentials (b, 1), 1 without any; the exponentials."""
    near = part.logits[:, part.band].clone()
    part.logits[:, part.band].sub_(part.same, alpha=2 * _FAR)
    largest, share = part.exponentials()
    share[:, part.band].mul_(1 - part.same)
    some = part.has_negatives.unsqueeze(1)
    sums = share.sum(1, keepdim=True) + (1 - some)
    return near, torch.where(some > 0, sums.log() + largest, -_FAR), sums, share


def _nt_xent(loss: Any, part: Part) -> tuple[Tensor, Tensor]:
    near, highest, sums, share = _negatives(part)
    excess = highest - near
    # an own place's logit is far below everything: it is no value
    values = softplus(excess.clamp_(max=_FAR / 2)).mul_(part.positive)
    chance = excess.sigmoid_().mul_(part.positive)
    share.mul_(chance.sum(1, keepdim=True) / sums)
    share[:, part.band].sub_(chance)
    return values, share


def _decoupled(loss: Any, part: Part) -> tuple[Tensor, Tensor]:
    near, highest, sums, share = _negatives(part)
    kept = part.positives * part.has_negatives
    values = torch.where(kept > 0, highest.squeeze(1) * kept - (near * part.positive).sum(1), 0.0)
    share.mul_((kept / sums.squeeze(1)).unsqueeze(1))
    share[:, part.band].sub_(part.positive * part.has_negatives.unsqueeze(1))
    return values, share
