"""Softmax losses on a whole distance matrix: value and derivative by each entry, with static shapes.

The functions have the same form as those of `dense_hinges`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.kernels import reduce
from losslib.kernels.dense_hinges import Slopes
from losslib.softmax import softplus

_FAR = 1e30  # taken off the logits of entries that do not count
_SPAN = 80.0
_LEAST = -85.0  # exponents below it are slow on some processors, and nothing next to 1


def _sums(logits: Tensor, mask: Tensor, highest: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """log-sum-exp over a mask's entries of each row (B, 1), 0 for none; the softmax; which rows have any.

    Overwrites the logits. highest: the largest that they can be, where they span little enough for it to be
    taken off instead of each row's largest.
    """
    if highest is not None:
        share = logits.sub_(highest).exp_().mul_(mask)
        total = share.sum(1, keepdim=True)
        some = (total > 0).to(logits.dtype)
        total = total + (1 - some)
        return (total.log() + highest) * some, share.div_(total), some
    largest = torch.addcmul(logits, mask - 1, mask.new_full((), _FAR)).amax(1, keepdim=True)
    some = (largest > -_FAR / 2).to(logits.dtype)
    some = torch.where(largest.isnan(), largest, some)
    largest = largest * some
    share = logits.sub_(largest).clamp_(_LEAST, 0.0).exp_().mul_(mask)
    total = share.sum(1, keepdim=True)
    total = total + (1 - some)
    return total.log() + largest, share.div_(total), some


def _highest(loss: Any, scale: float, offset: float = 0.0) -> float | None:
    """The largest that scale * (v - offset) can be, None where its least is too far below."""
    ends = [scale * (end - offset) for end in loss.distance.bounds()]
    return max(ends) if abs(ends[1] - ends[0]) <= _SPAN else None


def _similarity(loss: Any, v: Tensor, scale: float) -> Tensor:
    return v * (scale if loss.distance.is_inverted else -scale)


def _scale(loss: Any, scale: float) -> float:
    return scale if loss.distance.is_inverted else -scale


def sup_con(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """SupConLoss."""
    scale = 1 / loss.temperature
    logits = _similarity(loss, v, scale)
    count = positive.sum(1, keepdim=True)
    present = (count > 0).to(v.dtype)
    mean = (logits * positive).sum(1, keepdim=True) / count.clamp_min(1)
    everything, share, _ = _sums(logits, positive + negative, _highest(loss, _scale(loss, scale)))
    value, weight = reduce.rows(loss.reducer, ((everything - mean) * present).squeeze(1), present.squeeze(1))
    weight = weight.unsqueeze(1) * _scale(loss, scale)
    return value, share.mul_(weight).sub_(positive * (weight / count.clamp_min(1))), None


def nt_xent(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """NTXentLoss."""
    scale = 1 / loss.temperature
    logits = _similarity(loss, v, scale)
    negatives, share, some = _sums(logits.clone(), negative, _highest(loss, _scale(loss, scale)))
    above = (negatives - logits).mul_(some).add_((some - 1) * _FAR)
    values = softplus(above).mul_(positive)
    each = reduce.share(loss.reducer, positive, values)
    chance = above.sigmoid_().mul_(positive).mul_(each * _scale(loss, scale))
    slope = share.mul_(chance.sum(1, keepdim=True)).sub_(chance)
    return values.sum() * each, slope, None


def decoupled(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """DecoupledContrastiveLoss, with and without sigma, by the mean or sum of its values."""
    scale = 1 / loss.temperature
    logits = _similarity(loss, v, scale)
    push, share, some = _sums(logits.clone(), negative, _highest(loss, _scale(loss, scale)))
    kept = positive * some
    each = reduce.share(loss.reducer, kept, kept)
    if loss.sigma is None:
        pull, by_similarity = logits.mul_(kept), kept * (each * scale)
    else:
        pull, by_similarity = _weighted(loss, v, positive, kept, each)
    anchors = kept.sum(1, keepdim=True)
    value = ((push * anchors).sum() - pull.sum()) * each
    slope = share.mul_(anchors * (each * scale)).sub_(by_similarity)
    return value, slope if loss.distance.is_inverted else slope.neg_(), None


def _weighted(loss: Any, v: Tensor, positive: Tensor, kept: Tensor, each: Any) -> tuple[Tensor, Tensor]:
    """Pull w * s / tau of the kept pairs with w = 2 - M softmax(s / sigma), and its derivative by s."""
    s = _similarity(loss, v, 1.0)
    flat = _similarity(loss, v, 1 / loss.sigma).reshape(1, -1)
    number = positive.sum()
    chance = _sums(flat, positive.reshape(1, -1), None)[1].view_as(v)
    weight = (2 - number * chance) * kept / loss.temperature
    carried = s * kept
    by_weight = number / (loss.sigma * loss.temperature) * chance * (carried - (chance * carried).sum())
    return weight * s, (weight - by_weight) * each


def multi_similarity(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """MultiSimilarityLoss."""
    sign = 1.0 if loss.distance.is_inverted else -1.0
    of_pull, of_push = -sign * loss.alpha, sign * loss.beta
    apart = v - loss.base
    pull, near = _log1p_sums(apart * of_pull, positive, _highest(loss, of_pull, loss.base))
    push, far = _log1p_sums(apart.mul_(of_push), negative, _highest(loss, of_push, loss.base))
    present = ((positive + negative).sum(1) > 0).to(v.dtype)
    value, weight = reduce.rows(loss.reducer, pull / loss.alpha + push / loss.beta, present)
    return value, far.sub_(near).mul_((weight * sign).unsqueeze(1)), None


def _log1p_sums(logits: Tensor, mask: Tensor, highest: float | None) -> tuple[Tensor, Tensor]:
    """log(1 + sum of exp) of each row (B,), 0 for none, and its derivative by the logits."""
    total, share, some = _sums(logits, mask, highest)
    total = total * some + (some - 1) * _FAR
    return softplus(total).squeeze(1), share.mul_(total.sigmoid())


def circle(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    to_one, to_none = (1 + m - v).clamp_min_(0), (v + m).clamp_min_(0)
    pull, near, has_positive = _sums((1 - m - v).mul_(to_one).mul_(gamma), positive, None)
    push, far, has_negative = _sums((v - m).mul_(to_none).mul_(gamma), negative, None)
    present = has_positive * has_negative
    both = (pull + push) * present
    value, weight = reduce.rows(loss.reducer, softplus(both).squeeze(1), present.squeeze(1))
    weight = (weight * gamma).unsqueeze(1) * both.sigmoid()
    return value, far.mul_(to_none).sub_(near.mul_(to_one)).mul_(weight), None


def nca(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """NCALoss."""
    scale = loss.softmax_scale
    return _right_against_wrong(loss, v, positive, negative, scale, _highest(loss, _scale(loss, scale)))


def instance(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: Tensor | None) -> Slopes:
    """InstanceLoss; own: 1 at each row's own place (B, R), None for a separate reference set.

    A row's similarity to itself does not change with the row, so that its slope leads to no gradient. Being
    1, it keeps the right ones' sum of exponentials above 0 whatever they are taken off.
    """
    gamma = loss.gamma
    highest = _highest(loss, gamma) if own is None or gamma > _SPAN else gamma
    return _right_against_wrong(
        loss, v, positive if own is None else positive + own, negative, gamma, highest
    )


def _right_against_wrong(
    loss: Any, v: Tensor, right: Tensor, wrong: Tensor, scale: float, highest: float | None
) -> Slopes:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one."""
    logits, outer = _similarity(loss, v, scale), _scale(loss, scale)
    if highest is not None:
        every = logits.sub_(highest).exp_()
        near = every * right
        far = every.mul_(wrong)
        of_near, of_far = near.sum(1), far.sum(1)
        present = (of_near > 0).to(v.dtype)
        of_near = of_near + (1 - present)
        share = of_far / of_near
        value, weight = reduce.rows(loss.reducer, share.log1p(), present)
        weight = weight * outer / (of_near + of_far)
        return value, far.mul_(weight.unsqueeze(1)).sub_(near.mul_((weight * share).unsqueeze(1))), None
    near, pull, present = _sums(logits.clone(), right, None)
    far, push, some = _sums(logits, wrong, None)
    both = (far - near) * some + (some - 1) * _FAR
    value, weight = reduce.rows(loss.reducer, (softplus(both) * present).squeeze(1), present.squeeze(1))
    weight = weight.unsqueeze(1) * both.sigmoid() * outer
    return value, push.sub_(pull).mul_(weight), None
