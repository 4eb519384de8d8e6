"""NCALoss and InstanceLoss in blocks: the right ones of a row, in its class, against all wrong ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import by_rows, reduce
from losslib.kernels.blocked_softmax import Softmax
from losslib.kernels.blocks import FAR
from losslib.kernels.dense_right_wrong import RAISED
from losslib.kernels.function import Found, Inputs
from losslib.kernels.scratch import lease
from losslib.kernels.steep import LEAST, LIFT, ordinary
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import softplus


def nca(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """NCALoss, of cosines or of squared distances 2 - 2 s of unit rows."""
    scale = loss.softmax_scale * (1 if loss.distance.is_inverted else 2)
    return _of(loss, x, batch, wanted, scale, own=False)


def instance(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """InstanceLoss: a row itself is among its right ones."""
    return _of(loss, x, batch, wanted, loss.gamma, own=True)


def _of(loss: Any, x: Tensor, batch: Batch, wanted: bool, scale: float, own: bool) -> Found:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one, reduced."""
    softmax = Softmax(loss, x, batch, scale, scale - RAISED, scale if own else 2 * scale)
    squares, of_distances = softmax.sorted.rows.squares(softmax.rows), not loss.distance.is_inverted
    if of_distances and bool((squares == 0).any()):
        return by_rows.nca(loss, Inputs(x), batch, (wanted, False, False))  # a zero row is no unit row
    totals, lift = softmax.sums(wanted), max(softmax.lift, LIFT)
    wrong = totals.double().log() + softmax.less  # -inf without any
    # sums over the right ones, off the row itself where it is one, else off the largest
    right, peaks = torch.full_like(totals, float(own)), squares * scale if own else torch.zeros_like(totals)
    for some in softmax.positives():
        with lease():  # of what these need
            near = some.products(softmax.rows, scale)
            mask = some.mask(near)
            if not own:
                largest = near.add_(mask - 1, alpha=FAR).amax(2)
                some.add(peaks, torch.where(largest > -FAR / 2, largest, 0.0))
            near.sub_(some.anchors(peaks).unsqueeze(2)).clamp_(LEAST, 0.0).exp_().mul_(mask)
            some.add(right, near.sum(2))
            if wanted:
                sums = some.anchors(right)
                weight = _values(loss, some.anchors(wrong), sums, some.anchors(peaks))[1]
                pull = weight.mul_(-lift).div_(sums.clamp_min(1))  # the largest of a row is 1
                softmax.pull_pairs(some, near.mul_(pull.unsqueeze(2)))
    values, weights = _values(loss, wrong, right, peaks)
    each = reduce.each(loss.reducer, float(torch.count_nonzero(right)), float(torch.count_nonzero(values)))
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(weights * lift / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pulls.mul_(each * scale / lift)
    return Found(value, softmax.gradient())


def _values(loss: Any, wrong: Tensor, right: Tensor, peaks: Tensor) -> tuple[Tensor, Tensor]:
    """The values of rows with these sums, and their derivatives.

    wrong: log-sum-exp over the wrong ones. right: sums of exponentials off the peaks, 0 of none.
    """
    excess = torch.where(right == 0, -FAR, wrong - (right.double().log() + peaks)).to(right.dtype)
    values = softplus(excess)
    kept = values.sign() if type(loss.reducer) is AvgNonZeroReducer else 1.0
    return values, ordinary(excess.sigmoid_()).mul_(kept)
