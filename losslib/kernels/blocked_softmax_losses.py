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
from losslib.kernels.scratch import lease, take
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
    totals, others = softmax.sums(wanted), softmax.sorted.sizes - 1
    present = (others > 0).to(x.dtype)
    mean = softmax.positives_sum() * scale / others.clamp_min(1)
    values = (totals.double().log() + softmax.less - mean).to(x.dtype)
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
    softmax = off_one(loss, x, batch, scale)
    totals, positives = softmax.sums(wanted), softmax.sorted.sizes - 1
    some = (softmax.sorted.sizes < len(x)).to(x.dtype)
    positives = positives * some
    push = torch.where(some > 0, totals.double().log() + softmax.less, 0.0)
    total = (push * positives).sum() - scale * (softmax.positives_sum() * some).sum()
    number = 1.0 if type(loss.reducer) is SumReducer else max(float(positives.double().sum()), 1.0)
    value = (total / number).to(x.dtype)
    if not wanted:
        return Found(value)
    each = scale / number
    softmax.pull(positives * each / totals.clamp_min(torch.finfo(x.dtype).tiny))
    softmax.pull_positives(positives.clamp_max(1) * each)
    return Found(value, softmax.gradient())


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
    number = float(sum(count * (count - 1) for count in softmax.sorted.counts))
    each = reduce.each(loss.reducer, number, above)
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
        return super()._values(rows, columns, out).clamp_min_(-self.scale * self.margin)

    def _logits(self, values: Tensor, less: float) -> Tensor:
        return torch.addcmul(values.new_full((1,), -less), values, values, out=self.spare(*values.shape))

    def _slopes(self, values: Tensor, share: Tensor) -> Tensor:
        return values.add_(self.scale * self.margin).mul_(share)


def circle(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    softmax = _Circles(loss, x, batch, math.sqrt(gamma), gamma, circle_span(loss))
    softmax.margin = m
    totals = softmax.sums(wanted)
    push = totals.log() + (softmax.less - gamma * m * m)
    both = ((softmax.sorted.sizes > 1) & (softmax.sorted.sizes < len(x))).to(x.dtype)
    push = torch.where(both > 0, push, 0.0)
    chances, values = torch.zeros_like(totals), torch.zeros_like(totals)
    for some in softmax.positives():
        with lease():  # of what these need
            apart = some.products(softmax.rows, -1.0, 1.0)
            mask = some.mask(apart)
            # with r = 1 - s the logits are gamma (r^2 - m^2), so that 0 may stand for r^2 where there is none
            share = torch.mul(apart, apart, out=take(*apart.shape, dtype=apart.dtype)).mul_(mask)
            largest = share.amax(2, keepdim=True)
            # the constant factor serves the lower bound too
            sums = share.sub_(largest).mul_(gamma).clamp_min_(-SPAN).exp_().mul_(mask).sum(2)
            pull = largest.squeeze(2).mul_(gamma).add_(sums.log()).sub_(gamma * m * m)
            there = some.anchors(both)
            both_here = torch.where(there > 0, pull + some.anchors(push), 0.0)
            here = softplus(both_here).mul_(there)
            some.add(values, here)
            if wanted:
                chance = ordinary(both_here.sigmoid_()).mul_(
                    (here.sign() if _above(loss) else there) * softmax.lift
                )
                some.add(chances, chance)
                weight = (chance / sums.clamp_min_(1e-37)).neg_().unsqueeze(2)
                softmax.pull_pairs(some, share.mul_(apart.add_(m)).mul_(weight))
    each = reduce.each(loss.reducer, float(both.sum()), float(torch.count_nonzero(values)))
    value = x.new_tensor(float(values.sum(dtype=torch.float64)) * each)
    if not wanted:
        return Found(value)
    softmax.pull(chances / (totals * softmax.scale).clamp_min(torch.finfo(x.dtype).tiny))
    return Found(value, softmax.gradient(each * gamma / softmax.lift))


def _above(loss: Any) -> bool:
    return type(loss.reducer) is AvgNonZeroReducer
