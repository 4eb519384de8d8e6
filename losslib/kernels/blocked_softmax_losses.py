"""SupConLoss, NTXentLoss, DecoupledContrastiveLoss, MultiSimilarityLoss and CircleLoss in blocks."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_softmax import SPAN, Softmax
from losslib.kernels.blocks import FAR
from losslib.kernels.function import Found
from losslib.kernels.scratch import constant, lease, take
from losslib.kernels.steep import LEAST, ordinary
from losslib.reducers import AvgNonZeroReducer, SumReducer
from losslib.softmax import softplus


def off_one(loss: Any, x: Tensor, batch: Batch, scale: float, with_positives: bool = False) -> Softmax:
    """The sums of scaled cosines, off the largest that they can be."""
    return Softmax(loss, x, batch, scale, scale, 2 * scale, with_positives)


def sup_con(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """SupConLoss."""
    scale = 1 / loss.temperature
    softmax = off_one(loss, x, batch, scale, with_positives=True)
    totals, others, present = softmax.sums(wanted), softmax.sorted.size - 1, None
    if min(softmax.sorted.counts) == 1:
        others = softmax.sorted.sizes - 1
        others, present = others.clamp_min(1), others.clamp_max(1)
    mean = softmax.positives_sum() * scale / others
    values = (totals.double().log() + softmax.less - mean).to(x.dtype)
    if present is not None:
        values = torch.where(present > 0, values, 0.0)
    value, weight = reduce.rows(loss.reducer, values, present)
    if not wanted:
        return Found(value)
    weight = weight * scale
    softmax.pull(weight / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pull_positives(weight / others)
    return Found(value, softmax.gradient())


def decoupled(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """DecoupledContrastiveLoss without sigma."""
    scale = 1 / loss.temperature
    softmax = off_one(loss, x, batch, scale)
    totals, rows = softmax.sums(wanted), softmax.sorted
    several = float(len(rows.counts) > 1)  # classes, without which there are no negatives
    positives = (rows.sizes - 1) * several
    total = (log_of(softmax, totals) * positives).sum() - scale * several * softmax.positives_sum().sum()
    number = 1.0 if type(loss.reducer) is SumReducer else max(rows.pairs * several, 1.0)
    value = (total / number).to(x.dtype)
    if not wanted:
        return Found(value)
    each = scale / number
    softmax.pull(positives * each / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pull_positives(each * several if min(rows.counts) > 1 else positives.clamp_max(1) * each)
    return Found(value, softmax.gradient())


def log_of(softmax: Softmax, totals: Tensor) -> Tensor:
    """The log-sum-exp of each row's negatives in double precision, (N,), and 0 in a batch of one class."""
    return totals.double().log() + softmax.less if len(softmax.sorted.counts) > 1 else totals.double()


def nt_xent(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """NTXentLoss."""
    scale = 1 / loss.temperature
    softmax = off_one(loss, x, batch, scale)
    totals = softmax.sums(wanted)
    negatives = totals.log() + softmax.less  # -inf without negatives: a term of 0
    chances, total, above = torch.zeros_like(totals), 0.0, 0.0
    for some in softmax.positives():
        with lease():  # of what these need
            excess = some.products(softmax.rows, -scale).add_(some.anchors(negatives).unsqueeze(2))
            mask = some.mask(excess)
            values = softplus(excess).mul_(mask)
            total += float(values.sum(2).sum(dtype=torch.float64))
            if _above(loss):
                above += float(torch.count_nonzero(values))
            if wanted:
                chance = ordinary(excess.sigmoid_()).mul_(mask * softmax.lift)
                some.add(chances, chance.sum(2))
                softmax.pull_pairs(some, chance.neg_())
    each = reduce.each(loss.reducer, softmax.sorted.pairs, above)
    value = x.new_tensor(total * each)
    if not wanted:
        return Found(value)
    softmax.pull(chances / totals.clamp_min(torch.finfo(x.dtype).tiny))
    return Found(value, softmax.gradient(each * scale / softmax.lift))


def multi_similarity_span(loss: Any) -> float:
    """How far the logits of the negatives reach to either side, and a sum of their exponentials."""
    span: float = loss.beta * (1 + abs(loss.base)) + 10
    return span


def multi_similarity(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """MultiSimilarityLoss."""
    alpha, beta, base = loss.alpha, loss.beta, loss.base
    softmax = Softmax(loss, x, batch, beta, beta * base, multi_similarity_span(loss))
    totals = softmax.sums(wanted)
    push = totals.log() + (softmax.less - beta * base)
    pulls, largest = torch.zeros_like(totals), torch.zeros(())
    steep = 2 * alpha * (1 + abs(base)) > SPAN
    for some in softmax.positives():
        with lease():  # of what these need
            near = some.products(softmax.rows, -alpha, alpha * base)
            mask = some.mask(near)
            if steep:
                largest = near.add_(mask - 1, alpha=FAR).amax(2, keepdim=True)
                near.sub_(largest).clamp_min_(LEAST)
            sums = near.exp_().mul_(mask).sum(2, keepdim=True)
            pull = sums.log().add_(largest)  # -inf of a place that is no row
            some.add(pulls, softplus(pull).squeeze(2))
            if wanted:
                weight = ordinary(pull.sigmoid_()).div_(sums.clamp_min_(1e-37))
                softmax.pull_pairs(some, near.mul_(weight.mul_(-softmax.lift)))
    values = pulls.div_(alpha).add_(softplus(push) / beta)
    above = float(torch.count_nonzero(values))
    each = reduce.each(loss.reducer, len(x), above)  # of two rows or more each has a pair
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(ordinary(push.sigmoid_()).mul_(softmax.lift) / totals.clamp_min(torch.finfo(x.dtype).tiny))
    return Found(value, softmax.gradient(each / softmax.lift))


def circle_span(loss: Any) -> float:
    """How far apart the logits of the negatives may be."""
    span: float = loss.gamma * (1 if loss.margin < 1 else (1 + loss.margin) ** 2)
    return span


class _Circles(Softmax):
    """With w = max(s, -m) the logits are gamma (w^2 - m^2), weighted by w + m; values are sqrt(gamma) w."""

    margin: float

    def _values(self, rows: Tensor, columns: Tensor, out: Tensor) -> Tensor:
        torch.addmm(constant(0.0, rows), rows, columns, beta=0.0, alpha=self.scale, out=out)
        return out.clamp_min_(-self.scale * self.margin)

    def _logits(self, values: Tensor) -> Tensor:
        return torch.addcmul(constant(-self.lower, values), values, values, out=self.spare(*values.shape))

    def _slopes(self, values: Tensor, share: Tensor) -> Tensor:
        return values.add_(self.scale * self.margin).mul_(share)


def circle(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    scale = math.sqrt(gamma)
    softmax = _Circles(loss, x, batch, scale, gamma, circle_span(loss))
    softmax.margin = m
    totals = softmax.sums(wanted)
    push = totals.log() + (softmax.less - 2 * gamma * m * m)  # less what the positives' logits lack
    chances, values = torch.zeros_like(totals), torch.zeros_like(totals)
    for some in softmax.positives():
        with lease():  # of what these need
            # with r = 1 - s the logits are gamma (r^2 - m^2), so that 0 may stand for r^2 where there is none
            apart = some.products(softmax.rows, -scale, scale)
            mask = some.mask(apart)
            share = torch.mul(apart, apart, out=take(*apart.shape, dtype=apart.dtype)).mul_(mask)
            largest = share.amax(2, keepdim=True)
            # the constant factor serves the lower bound too
            sums = share.sub_(largest).clamp_min_(-SPAN).exp_().mul_(mask).sum(2)
            # -inf for a row without positives or negatives: a term of 0
            both = sums.log().add_(largest.squeeze(2)).add_(some.anchors(push))
            some.add(values, softplus(both))
            if wanted:
                chance = ordinary(both.sigmoid_()).mul_(softmax.lift)
                some.add(chances, chance)
                weight = (chance / sums.clamp_min_(1e-37)).neg_().unsqueeze(2)
                softmax.pull_pairs(some, share.mul_(apart.add_(m * scale)).mul_(weight))
    counts = softmax.sorted.counts
    number = float(sum(count for count in counts if 1 < count < len(x)))  # of rows with both
    each = reduce.each(loss.reducer, number, float(torch.count_nonzero(values)))
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(chances / totals.clamp_min(torch.finfo(x.dtype).tiny))
    return Found(value, softmax.gradient(each * scale / softmax.lift))


def _above(loss: Any) -> bool:
    return type(loss.reducer) is AvgNonZeroReducer
