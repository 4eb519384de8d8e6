"""DecoupledContrastiveLoss's weights of positive pairs, and the loss with them in symmetric blocks."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_softmax import Softmax
from losslib.kernels.blocked_softmax_losses import decoupled, log_of, off_one
from losslib.kernels.function import Found
from losslib.kernels.positives import Positives
from losslib.kernels.row_blocks import FAR
from losslib.kernels.scratch import lease, take
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
    scale, sigma = 1 / loss.temperature, loss.sigma
    softmax = off_one(loss, x, batch, scale)
    totals, rows = softmax.sums(wanted), softmax.sorted
    several = float(len(rows.counts) > 1)  # classes, without which there are no negatives
    groups = list(softmax.positives())
    largest = _largest(softmax, groups, sigma)
    total, carried, plain = 0.0, 0.0, 0.0  # sums of exponentials, of them times logits, and of logits
    for some in groups:
        with lease() if len(groups) > 1 else nullcontext():
            logits, share, mask = found = _shares(softmax, some, sigma, largest)
            room = take(*logits.shape, dtype=logits.dtype)
            total += float(share.sum(2).sum(dtype=torch.float64))
            carried += float(torch.mul(share, logits, out=room).sum(2).sum(dtype=torch.float64))
            plain += float(torch.mul(logits, mask, out=room).sum(2).sum(dtype=torch.float64))
    number = rows.pairs * several
    over, mean = number / max(total, 1e-300), carried / max(total, 1e-300)
    positives = (rows.sizes - 1) * several
    # the sum of (2 - number * share / total) * logits
    pulled = (2 * plain - over * carried) * sigma * scale * several
    each = reduce.each(loss.reducer, number, 0.0)
    value = x.new_tensor((float((log_of(softmax, totals) * positives).sum()) - pulled) * each)
    if not wanted:
        return Found(value)
    for some in groups:
        with lease():
            logits, share, mask = _shares(softmax, some, sigma, largest) if len(groups) > 1 else found
            slope = logits.add_(1 - mean).mul_(share).mul_(over).sub_(mask, alpha=2 * several)
            softmax.pull_pairs(some, slope)
    softmax.pull(positives / totals.clamp_min(torch.finfo(x.dtype).tiny))
    return Found(value, softmax.gradient(each * scale))


def _largest(softmax: Softmax, groups: list[Positives], sigma: float) -> float:
    """A logit s / sigma that no positive's is beyond: the largest, where the least could be far below."""
    largest = 1 / sigma
    if 2 * largest > -LEAST:
        with lease():
            largest = -largest
            for some in groups:
                logits = some.products(softmax.rows, 1 / sigma)
                largest = max(largest, logits.add_(some.mask(logits) - 1, alpha=FAR).amax().item())
    return largest


def _shares(softmax: Softmax, some: Positives, sigma: float, largest: float) -> tuple[Tensor, Tensor, Tensor]:
    """The logits s / sigma of positives, their exponentials off the largest, and their mask."""
    logits = some.products(softmax.rows, 1 / sigma)
    mask = some.mask(logits)
    share = torch.sub(logits, largest, out=take(*logits.shape, dtype=logits.dtype))
    return logits, share.clamp_(LEAST, 0.0).exp_().mul_(mask), mask
