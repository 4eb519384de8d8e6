"""NCALoss and InstanceLoss in blocks: the right ones of a row, in its class, against all wrong ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import by_rows, reduce
from losslib.kernels.blocked_softmax import Softmax
from losslib.kernels.blocked_softmax_losses import scaled
from losslib.kernels.dense_right_wrong import RAISED, lift
from losslib.kernels.function import Found, Inputs
from losslib.kernels.scratch import lease
from losslib.reducers import AvgNonZeroReducer


def nca(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """NCALoss, of cosines or of squared distances 2 - 2 s of unit rows."""
    scale = loss.softmax_scale * (1 if loss.distance.is_inverted else 2)
    return _of(loss, x, batch, wanted, scale, own=False)


def instance(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """InstanceLoss: a row itself is among its right ones."""
    return _of(loss, x, batch, wanted, loss.gamma, own=True)


def _of(loss: Any, x: Tensor, batch: Batch, wanted: bool, scale: float, own: bool) -> Found:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one, reduced."""
    lifted = lift(own)
    softmax = Softmax(loss, x, batch, scaled(scale, scale - RAISED), with_positives=False)
    of_distances = not loss.distance.is_inverted
    if of_distances and bool((softmax.sorted.rows.squares(softmax.rows) == 0).any()):
        return by_rows.nca(loss, Inputs(x), batch, (wanted, False, False))  # a zero row is no unit row
    wrong = softmax.sums(wanted)
    right = torch.zeros_like(wrong)
    if own:
        right = softmax.sorted.rows.squares(softmax.rows).sub_(1).mul_(scale).add_(RAISED).exp_()
    for some in softmax.positives():
        with lease():  # of what these need
            near = some.products(softmax.rows, scale, RAISED - scale).exp_()
            some.add(right, near.mul_(some.mask(near)).sum(2))
            if wanted:
                pull = _parts(loss, some.anchors(right), some.anchors(wrong), lifted)[2]
                softmax.pull_pairs(some, near.mul_(pull.neg_().unsqueeze(2)))
    values, weights, _ = _parts(loss, right, wrong, lifted)
    each = reduce.each(loss.reducer, float(torch.count_nonzero(right)), float(torch.count_nonzero(values)))
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(weights)
    softmax.pulls.mul_(each * scale / lifted)
    return Found(value, softmax.gradient())


def _parts(loss: Any, right: Tensor, wrong: Tensor, lifted: float) -> tuple[Tensor, Tensor, Tensor]:
    """The values of rows with these sums, and what their wrong and their right exponentials pull with."""
    there = (right > 0).to(right.dtype)
    right = right + (1 - there)
    share = wrong / right
    beyond = share.isinf()  # then the right ones are nothing beside the wrong
    values = torch.where(beyond, wrong.log() - right.log(), share.log1p()) * there
    kept = values.sign() if type(loss.reducer) is AvgNonZeroReducer else there
    weight = kept * lifted / (right + wrong)
    return values, weight, torch.where(beyond, kept * lifted / right, weight * share)
