"""DecoupledContrastiveLoss's weights of positive pairs, and the loss with them in symmetric blocks."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_softmax_losses import decoupled, off_one
from losslib.kernels.function import Found
from losslib.kernels.row_blocks import FAR
from losslib.kernels.scratch import lease
from losslib.kernels.steep import LEAST


class Weights:
    """The weights 2 - M softmax(s / sigma) of the M positive pairs of a batch.

    They share one mean, with a gradient of its own: it takes a pass over the positives beforehand.
    """

    def __init__(self, loss: Any) -> None:
        self.sigma, self.temperature = loss.sigma, loss.temperature
        self.number, self.largest, self.total, self.carried = 0.0, -FAR, 0.0, 0.0

    def add(self, logits: Tensor, positive: Tensor, kept: Tensor) -> None:
        """Count some positives: logits s / sigma and their mask (..., w), and which rows (...) take part."""
        if not logits.numel():
            return
        largest = torch.addcmul(logits, positive - 1, positive.new_full((), FAR)).amax().item()
        if largest <= -FAR / 2:
            return
        if largest > self.largest:
            factor = math.exp(max(self.largest - largest, -700.0))
            self.largest, self.total, self.carried = largest, self.total * factor, self.carried * factor
        share = (logits - self.largest).clamp_(LEAST, 0.0).exp_().mul_(positive)
        self.number += float(positive.expand_as(logits).sum(-1).double().sum())
        self.total += float(share.sum(dtype=torch.float64))
        self.carried += float((share.mul_(logits).sum(-1) * kept).sum(dtype=torch.float64))

    def of(self, logits: Tensor, positive: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        """The pull w s / tau of these positives, 0 for rows that take no part, and its slope by s."""
        over = 1 / max(self.total, 1e-300)
        chance = (logits - self.largest).clamp_(LEAST, 0.0).exp_().mul_(positive).mul_(self.number * over)
        taken = positive * kept.unsqueeze(-1)
        weight = torch.rsub(chance, 2).mul_(taken)
        pull = (weight * logits).mul_(self.sigma / self.temperature)
        by_weight = chance.mul_(taken.mul(logits).sub_(self.carried * over))
        return pull, weight.sub_(by_weight).div_(self.temperature)


def blocked(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """DecoupledContrastiveLoss, with and without sigma."""
    if loss.sigma is None:
        return decoupled(loss, x, batch, wanted)
    scale = 1 / loss.temperature
    softmax = off_one(loss, x, batch, scale)
    totals, sizes = softmax.sums(wanted), softmax.sorted.sizes
    kept = (sizes < len(x)).to(x.dtype)
    weights, pulled = Weights(loss), 0.0
    for some in softmax.positives():
        with lease():  # of what these need
            logits = some.products(softmax.rows, 1 / loss.sigma)
            weights.add(logits, some.mask(logits), some.anchors(kept))
    for some in softmax.positives():
        with lease():
            logits = some.products(softmax.rows, 1 / loss.sigma)
            pull, slope = weights.of(logits, some.mask(logits), some.anchors(kept))
            pulled += float(pull.sum(dtype=torch.float64))
            if wanted:
                softmax.pull_pairs(some, slope.mul_(-1 / scale))
    positives = (sizes - 1) * kept
    push = torch.where(kept > 0, totals.double().log() + softmax.less, 0.0)
    each = reduce.each(loss.reducer, float(positives.double().sum()), 0.0)
    value = x.new_tensor((float((push * positives).sum()) - pulled) * each)
    if not wanted:
        return Found(value)
    softmax.pull(positives / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pulls.mul_(each * scale)
    return Found(value, softmax.gradient())
