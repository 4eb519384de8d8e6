"""NCALoss and InstanceLoss in blocks: the right ones of a row, in its class, against all wrong ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import by_rows
from losslib.kernels.blocked_softmax import Softmax
from losslib.kernels.blocked_softmax_losses import each_of, scaled
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
    values, weights, present = torch.zeros_like(wrong), torch.zeros_like(wrong), 0.0
    for block in softmax.sorted.blocks():
        with lease():  # of what one block needs
            place = slice(block.start, block.stop)
            near, mask = softmax.band(block, scale, RAISED - scale)
            right[place] += near.exp_().mul_(mask).sum(1)
            some = (right[place] > 0).to(x.dtype)
            present += float(some.sum())
            below, above = right[place] + (1 - some), wrong[place]
            share = above / below
            far = share.isinf()  # then the one is nothing beside the other
            values[place] = torch.where(far, above.log() - below.log(), share.log1p()) * some
            if wanted:
                kept = values[place].sign() if type(loss.reducer) is AvgNonZeroReducer else some
                weight = kept * lifted / (below + above)
                weights[place] = weight
                pull = torch.where(far, kept * lifted / below, weight * share)
                softmax.pull_band(block, near.mul_(-pull.unsqueeze(1)))
    each = each_of(loss, present, float(torch.count_nonzero(values)))
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(weights)
    softmax.pulls.mul_(each * scale / lifted)
    return Found(value, softmax.gradient())
