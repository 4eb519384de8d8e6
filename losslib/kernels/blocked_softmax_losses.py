"""SupConLoss, NTXentLoss, DecoupledContrastiveLoss, MultiSimilarityLoss and CircleLoss in blocks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_softmax import SPAN, Exponentials, Softmax
from losslib.kernels.function import Found
from losslib.reducers import AvgNonZeroReducer, SumReducer
from losslib.softmax import softplus


def _scaled(scale: float, shift: float) -> Exponentials:
    def of(similarity: Tensor) -> tuple[Tensor, None]:
        return similarity.mul_(scale).sub_(shift).exp_(), None

    return of


def sup_con(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """SupConLoss."""
    scale = 1 / loss.temperature
    softmax = Softmax(loss, x, batch, _scaled(scale, scale), with_positives=True)
    totals, others = softmax.sums(wanted), softmax.sorted.sizes - 1
    present = (others > 0).to(x.dtype)
    mean = softmax.positives_mean() * scale / others.clamp_min(1)
    values = (totals.double().log() + scale - mean).to(x.dtype)
    values = torch.where(present > 0, values, 0.0)
    value, weight = reduce.rows(loss.reducer, values, present)
    if not wanted:
        return Found(value)
    weight = weight * scale
    softmax.pull(weight / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pull_positives(weight / others.clamp_min(1))
    return Found(value, softmax.gradient())


def decoupled(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """DecoupledContrastiveLoss without sigma."""
    scale = 1 / loss.temperature
    softmax = Softmax(loss, x, batch, _scaled(scale, scale), with_positives=False)
    totals, positives = softmax.sums(wanted), softmax.sorted.sizes - 1
    some = (softmax.sorted.sizes < len(x)).to(x.dtype)
    positives = positives * some
    push = torch.where(some > 0, totals.double().log() + scale, 0.0)
    total = (push * positives).sum() - scale * (softmax.positives_mean() * some).sum()
    number = 1.0 if type(loss.reducer) is SumReducer else max(float(positives.double().sum()), 1.0)
    value = (total / number).to(x.dtype)
    if not wanted:
        return Found(value)
    each = scale / number
    softmax.pull(positives * each / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pull_positives(some * each)
    return Found(value, softmax.gradient())


def nt_xent(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """NTXentLoss."""
    scale = 1 / loss.temperature
    softmax = Softmax(loss, x, batch, _scaled(scale, scale), with_positives=False)
    totals = softmax.sums(wanted)
    negatives = totals.log() + scale  # -inf without negatives: a term of 0
    chances, total, above = torch.zeros_like(totals), 0.0, 0.0
    for block, similarity, mask in softmax.bands():
        place = slice(block.start, block.stop)
        excess = similarity.mul_(-scale).add_(negatives[place].unsqueeze(1))
        values = softplus(excess).mul_(mask)
        total += float(values.sum())
        above += float(torch.count_nonzero(values))
        if wanted:
            chance = excess.sigmoid_().mul_(mask)
            chances[place] = chance.sum(1)
            softmax.pull_band(block, chance.neg_())
    number = float((softmax.sorted.sizes.double() - 1).sum())
    each = _each(loss, number, above)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    softmax.pull(chances / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pulls.mul_(each * scale)
    return Found(value, softmax.gradient())


def _each(loss: Any, number: float, above: float) -> float:
    if type(loss.reducer) is SumReducer:
        return 1.0
    return 1 / max(above if type(loss.reducer) is AvgNonZeroReducer else number, 1.0)


def multi_similarity(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """MultiSimilarityLoss."""
    alpha, beta, base = loss.alpha, loss.beta, loss.base
    softmax = Softmax(loss, x, batch, _scaled(beta, beta * base), with_positives=False)
    totals = softmax.sums(wanted)
    push = totals.log1p() / beta
    total, above = 0.0, 0.0
    for block, similarity, mask in softmax.bands():
        place = slice(block.start, block.stop)
        near = similarity.sub_(base).mul_(-alpha).exp_().mul_(mask)
        sums = near.sum(1)
        values = sums.log1p() / alpha + push[place]
        total += float(values.sum(dtype=torch.float64))
        above += float(torch.count_nonzero(values))
        if wanted:
            softmax.pull_band(block, near.mul_((-1 / (1 + sums)).unsqueeze(1)))
    each = _each(loss, len(x), above)  # of two rows or more each has a pair
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    softmax.pull(1 / (1 + totals))
    softmax.pulls.mul_(each)
    return Found(value, softmax.gradient())


def circle(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    shift = gamma * (1 - m * m)

    def exponentials(similarity: Tensor) -> tuple[Tensor, Tensor]:
        weight = similarity.add(m).clamp_min_(0)
        return similarity.sub_(m).mul_(weight).mul_(gamma).sub_(shift).exp_(), weight

    softmax = Softmax(loss, x, batch, exponentials, with_positives=False)
    totals = softmax.sums(wanted)
    push = totals.log() + shift
    both = ((softmax.sorted.sizes > 1) & (softmax.sorted.sizes < len(x))).to(x.dtype)
    push = torch.where(both > 0, push, 0.0)
    chances, total, above = torch.zeros_like(totals), 0.0, 0.0
    for block, similarity, mask in softmax.bands():
        place = slice(block.start, block.stop)
        weight = (1 + m - similarity).clamp_min_(0)
        logits = similarity.neg_().add_(1 - m).mul_(weight).mul_(gamma)
        largest = logits.sub((1 - mask) * 1e30).amax(1, keepdim=True)
        largest = torch.where(largest < -1e29, 0.0, largest)
        share = logits.sub_(largest).clamp_(-SPAN, 0.0).exp_().mul_(mask)
        sums = share.sum(1, keepdim=True)
        here = both[place]
        pull = torch.where(here > 0, (sums.log() + largest).squeeze(1), 0.0)
        values = softplus(pull + push[place]) * here
        total += float(values.sum(dtype=torch.float64))
        above += float(torch.count_nonzero(values))
        if wanted:
            chance = (
                (pull + push[place]).sigmoid() * values.sign()
                if _above(loss)
                else ((pull + push[place]).sigmoid() * here)
            )
            chances[place] = chance
            shares = share.mul_(weight).mul_((-chance / sums.squeeze(1).clamp_min(1e-37)).unsqueeze(1))
            softmax.pull_band(block, shares)
    each = _each(loss, float(both.sum()), above)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    softmax.pull(chances / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pulls.mul_(each * gamma)
    return Found(value, softmax.gradient())


def _above(loss: Any) -> bool:
    return type(loss.reducer) is AvgNonZeroReducer
