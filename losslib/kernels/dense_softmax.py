"""Softmax losses on a whole distance matrix: value and derivative by each entry, with static shapes.

The functions have the same form as those of `dense_hinges`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.kernels import reduce
from losslib.kernels.dense_hinges import Slopes, _both, _shifted
from losslib.kernels.masks import Masks
from losslib.kernels.reduce import Number, total
from losslib.kernels.scratch import again, constant, room
from losslib.kernels.steep import LEAST, LIFT, ordinary
from losslib.softmax import softplus

_FAR = 1e30  # taken off the logits of entries that do not count
SPAN = 76.0  # a sum of 100,000 exponentials over one of e^-76 is a number in single precision
_UNSHIFTED = 60.0  # exponents from which a sum of exponentials could leave single precision
_SQUARES = 80.0  # gamma e^80, what the circle loss divides by at the most, is a number
_APART = 64.0  # between the largest exponents of the rows: e^_LEAST is nothing next to e^-64
_LEAST = -85.0  # exponents below it are slow on some processors


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
    share = logits.sub_(largest).clamp_(LEAST, 0.0).exp_().mul_(mask)
    total = share.sum(1, keepdim=True)
    total = total + (1 - some)
    return total.log() + largest, share.div_(total), some


def _highest(loss: Any, scale: float, offset: float = 0.0) -> float | None:
    """The largest that scale * (v - offset) can be, None where its least is too far below."""
    ends = [scale * (end - offset) for end in loss.distance.bounds()]
    return max(ends) if abs(ends[1] - ends[0]) <= SPAN else None


def _similarity(loss: Any, v: Tensor, scale: float) -> Tensor:
    return v * (scale if loss.distance.is_inverted else -scale)


def _scale(loss: Any, scale: float) -> float:
    return scale if loss.distance.is_inverted else -scale


def _exponentials(v: Tensor, scale: float, less: float, out: Tensor | None = None) -> Tensor:
    """exp(scale * v - less), in `out`."""
    return _shifted(v, -less, scale, out).exp_()


def _spare(loss: Any, v: Tensor) -> Tensor:
    """Where the last result made from the values may go: in their place, where nothing needs them any more.

    The way back divides by distances to the power 1. What is used twice stays in the cache.
    """
    return v if loss.distance.is_inverted or loss.distance.power != 1 else room(v)


def _column(weight: Number) -> Number:
    """One weight a row as a column (B, 1); one number for all stays as it is."""
    return weight.unsqueeze(1) if isinstance(weight, Tensor) and weight.ndim else weight


def _lifted(weight: Number, times: float) -> tuple[Number, float]:
    """A weight and a number it is multiplied by: 1 where one weight for all can go to the rows instead."""
    if isinstance(weight, Tensor) or weight == 0:
        return weight * times, 1.0
    return 1.0, 1 / (weight * times)


def _over(weight: Number, sums: Tensor) -> Tensor:
    """weight / sums, (B,)."""
    return weight / sums if isinstance(weight, Tensor) or weight != 1 else sums.reciprocal()


def _sum_or_one(share: Tensor) -> Tensor:
    """The sums of the rows (B,), 1 in place of 0."""
    return _or_ones(share.sum(1))


def _or_ones(sums: Tensor) -> Tensor:
    """Sums, 1 in place of 0."""
    return sums + (sums == 0).to(sums.dtype)


def _or_one(sum_: Number) -> Number:
    """A sum, 1 in place of 0."""
    return sum_ + (sum_ == 0)


def _times(masks: Masks, weight: Tensor, within: Tensor) -> Tensor:
    """A weight of each row (B,), or of both rows of a pair, where `within` holds a positive pair, else 0."""
    if masks.symmetric:
        return masks.both(weight, room(within)).mul_(masks.near)
    return masks.near * masks.column(weight)


def sup_con(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """SupConLoss."""
    scale = _scale(loss, 1 / loss.temperature)
    highest, present = _highest(loss, scale), masks.has_positives
    counts = masks.positives if present is None else masks.positives.clamp_min(1)
    within = masks.within(v)
    part = torch.mul(within, masks.near, out=room(within))
    pull = masks.sums(part)
    if highest is None:
        everything, share, _ = _sums(v * scale, masks.positive + masks.negative, None)
        values = torch.addcdiv(everything.squeeze(1), pull, counts, value=-scale)
        value, weight = reduce.rows(loss.reducer, values if present is None else values * present, present)
        weight = weight * scale
        slope = share.mul_(_column(weight)).sub_(masks.positive * _column(weight / counts))
        return Slopes(value, slope)
    share = masks.keep_pairs_(_exponentials(v, scale, highest, _spare(loss, v)))
    sums = share.sum(1) if present is None else _sum_or_one(share)
    values = sums.log().addcdiv_(pull, counts, value=-scale).add_(highest)
    value, weight = reduce.rows(loss.reducer, values, present)
    weight, lifted = _lifted(weight, scale)
    share.mul_(_both(_over(weight, sums), masks.symmetric, again(part, v)))
    within = masks.within(share)
    if isinstance(weight, Tensor) or not masks.symmetric:
        within.sub_(_times(masks, _over(weight, counts), within))
    else:  # both rows of a positive pair have as many positives
        within.addcmul_(masks.near, masks.column(_over(weight, counts)), value=-2)
    return Slopes(value, share, both=masks.symmetric, lifted=lifted)


def nt_xent(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """NTXentLoss."""
    scale = _scale(loss, 1 / loss.temperature)
    highest, some = _highest(loss, scale), masks.has_negatives
    if highest is None or abs(scale) * (loss.distance.bounds()[1] - loss.distance.bounds()[0]) > _UNSHIFTED:
        return _nt_xent_shifted(loss, v * scale, masks, scale)
    every = _exponentials(v, scale, highest, _spare(loss, v))
    near = masks.taken(every)
    share = masks.keep_negatives(every, out=room(v) if near is every else every)
    sums, positive = share.sum(1), masks.near
    column, part = masks.column(sums), room(near)
    values = torch.div(column, near, out=part).log1p_().mul_(positive)  # without negatives 0
    sum_ = total(values)
    each = reduce.share(loss.reducer, masks.positives if some is None else masks.positives * some, values)
    # off the sums of exponentials of an anchor and of its negatives, which the chance of a negative is over
    over = torch.div(positive, torch.add(near, column, out=part), out=part)
    share.mul_(_both(masks.sums(over), masks.symmetric, room(v)))
    within = masks.within(share).addcmul_(over, column, value=-1)
    if masks.symmetric:  # and in the other order
        row = masks.row(sums)
        over = torch.div(positive, near.add_(row), out=near)
        within.addcmul_(over, row, value=-1)
    slope, lifted = reduce.times_(share, each * scale)
    return Slopes(sum_ * each, slope, both=masks.symmetric, lifted=lifted)


def _nt_xent_shifted(loss: Any, logits: Tensor, masks: Masks, scale: float) -> Slopes:
    negatives, share, some = _sums(logits.clone(), masks.negative, None)
    above = (negatives - logits).mul_(some).add_((some - 1) * _FAR)
    values = softplus(above).mul_(masks.positive)
    each = reduce.share(loss.reducer, masks.positive, values)
    chance = ordinary(above.sigmoid_()).mul_(masks.positive).mul_(each * scale * LIFT)
    slope = share.mul_(chance.sum(1, keepdim=True)).sub_(chance)
    return Slopes(total(values) * each, slope, lifted=LIFT)


def decoupled(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """DecoupledContrastiveLoss, with and without sigma, by the mean or sum of its values."""
    scale = _scale(loss, 1 / loss.temperature)
    highest, some = _highest(loss, scale), masks.has_negatives
    anchors = masks.positives if some is None else masks.positives * some
    each = reduce.share(loss.reducer, anchors, anchors)
    if highest is None or (loss.sigma is not None and _highest(loss, _scale(loss, 1 / loss.sigma)) is None):
        kept = masks.positive if some is None else masks.positive * some.unsqueeze(1)
        return _decoupled_shifted(loss, v, masks, kept, anchors, each)
    kept = masks.near if some is None else masks.near * masks.column(some)
    near = masks.within(v)
    part = torch.mul(near, kept, out=room(near))
    pull, kept = (total(part), kept) if loss.sigma is None else _weighted_pull(loss, near, masks, part, kept)
    share = masks.keep_negatives_(_exponentials(v, scale, highest, _spare(loss, v)))
    sums = share.sum(1) if some is None else _sum_or_one(share)
    value = (total(sums.log().add_(highest).mul_(anchors)) - pull * scale) * each
    share.mul_(_both(anchors / sums, masks.symmetric, again(part, v)))
    masks.within(share).sub_(kept, alpha=2 if masks.symmetric else 1)
    slope, lifted = reduce.times_(share, each * scale)
    return Slopes(value, slope, both=masks.symmetric, lifted=lifted)


def _weighted_pull(loss: Any, v: Tensor, masks: Masks, pulled: Tensor, kept: Tensor) -> tuple[Number, Tensor]:
    """Sum of the kept values v, `pulled`, each times 2 - M softmax(s / sigma), and its derivative by v.

    v: what `within` gives. The softmax is over all M positives. Overwrites `pulled`.
    """
    scale = _scale(loss, 1 / loss.sigma)
    highest, number = _highest(loss, scale), total(masks.positives)
    assert highest is not None
    share = _exponentials(v, scale, highest).mul_(masks.near)
    of_share = number / _or_one(total(share))
    mean = total(torch.mul(share, pulled, out=room(v))) * of_share
    sum_ = 2 * total(pulled) - mean
    # kept * (2 - M share) - M share * (pulled - mean) / sigma
    pulled.sub_(mean / _or_one(number))
    share.mul_(torch.add(kept, pulled, alpha=scale, out=pulled))
    return sum_, share.mul_(-of_share).add_(kept, alpha=2)


def _decoupled_shifted(
    loss: Any, v: Tensor, masks: Masks, kept: Tensor, anchors: Tensor, each: Number
) -> Slopes:
    scale = 1 / loss.temperature
    logits, column = _similarity(loss, v, scale), anchors.unsqueeze(1)
    push, share, _ = _sums(logits.clone(), masks.negative, _highest(loss, _scale(loss, scale)))
    if loss.sigma is None:
        pull, by_similarity = logits.mul_(kept), kept * (each * scale)
    else:
        pull, by_similarity = _weighted(loss, v, masks.positive, kept, each)
    value = ((push * column).sum() - pull.sum()) * each
    slope = share.mul_(column * (each * scale)).sub_(by_similarity)
    return Slopes(value, slope if loss.distance.is_inverted else slope.neg_())


def _weighted(loss: Any, v: Tensor, positive: Tensor, kept: Tensor, each: Number) -> tuple[Tensor, Tensor]:
    """Pull w * s / tau of the kept pairs with w = 2 - M softmax(s / sigma), and its derivative by s."""
    s = _similarity(loss, v, 1.0)
    flat = _similarity(loss, v, 1 / loss.sigma).reshape(1, -1)
    number = positive.sum()
    chance = _sums(flat, positive.reshape(1, -1), None)[1].view_as(v)
    weight = (2 - number * chance) * kept / loss.temperature
    carried = s * kept
    by_weight = number / (loss.sigma * loss.temperature) * chance * (carried - (chance * carried).sum())
    return weight * s, (weight - by_weight) * each


def multi_similarity(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """MultiSimilarityLoss."""
    sign, present = (1.0 if loss.distance.is_inverted else -1.0), masks.has_pairs
    of_pull, of_push, base = -sign * loss.alpha, sign * loss.beta, loss.base
    ends = [scale * (end - base) for scale in (of_pull, of_push) for end in loss.distance.bounds()]
    if min(ends) < _LEAST or max(ends) > _UNSHIFTED:
        apart = v - base
        pull, near = _log1p_sums(apart * of_pull, masks.positive)
        push, far = _log1p_sums(apart.mul_(of_push), masks.negative)
        value, weight = reduce.rows(loss.reducer, pull / loss.alpha + push / loss.beta, present)
        return Slopes(value, far.sub_(near).mul_(_column(weight * sign)), lifted=LIFT)
    far = masks.keep_negatives_(_exponentials(v, of_push, of_push * base))
    within = masks.within(v)
    out = _spare(loss, v) if within is v else room(within)
    near = _exponentials(within, of_pull, of_pull * base, out).mul_(masks.near)
    of_near, of_far = masks.sums(near), far.sum(1)
    values = of_near.log1p().div_(loss.alpha).add_(of_far.log1p(), alpha=1 / loss.beta)
    value, weight = reduce.rows(loss.reducer, values, present)
    weight, lifted = _lifted(weight, sign)
    part = room(v)
    far.mul_(_both(_over(weight, of_far.add_(1)), masks.symmetric, part))
    both = masks.both(_over(weight, of_near.add_(1)), again(part, within))
    masks.within(far).addcmul_(near, both, value=-1)
    return Slopes(value, far, both=masks.symmetric, lifted=lifted)


def _log1p_sums(logits: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """log(1 + sum of exp) of each row (B,), 0 for none, and LIFT times its derivative by the logits."""
    total, share, some = _sums(logits, mask, None)
    total = total * some + (some - 1) * _FAR
    return softplus(total).squeeze(1), share.mul_(ordinary(total.sigmoid()).mul_(LIFT))


def circle(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    if not 0 <= m < 1 or gamma > _SQUARES:
        return _circle_shifted(loss, v, masks)
    # with r = 1 - v and w = max(v, -m) the logits are gamma (r^2 - m^2) and gamma (w^2 - m^2)
    apart = _shifted(masks.within(v), 1.0, -1.0)
    above = torch.clamp_min(v, -m, out=v)
    present, near = masks.has_positives, room(apart)
    largest = masks.largest(torch.mul(apart, masks.near, out=near)).square_().mul_(gamma)
    less = _common(largest, present, masks)
    common = less is not largest
    off = -(less if common else masks.column(less))
    torch.addcmul(off, apart, apart, value=gamma, out=near).clamp_(_LEAST, 0.0).exp_()
    near.mul_(masks.near)
    far = torch.addcmul(constant(-gamma, v), above, above, value=gamma, out=room(v)).exp_()
    masks.keep_negatives_(far)
    if (some := masks.has_negatives) is not None:
        present = some if present is None else present * some
    of_near, of_far = masks.sums(near), far.sum(1)
    if present is not None:
        of_near, of_far = _or_ones(of_near), _or_ones(of_far)
    # log by log: off a common exponent their product may have left single precision
    logits = of_near.log().add_(of_far.log()).add_(less).add_(gamma * (1 - 2 * m * m))
    value, weight = reduce.rows(loss.reducer, softplus(logits), present)
    weight, lifted = _lifted(weight, gamma)
    weight = (
        logits.sigmoid_() if isinstance(weight, float) and weight == 1 else logits.sigmoid_().mul_(weight)
    )
    far.mul_(above.add_(m)).mul_(_both(weight / of_far, masks.symmetric, above))
    near.mul_(apart.add_(m))
    within, weight = masks.within(far), weight / of_near
    within.addcmul_(near, masks.both(weight, apart) if common else masks.column(weight), value=-1)
    if masks.symmetric and not common:
        within.sub_(torch.mul(near, masks.column(weight)).mT)
    return Slopes(value, far, both=masks.symmetric, lifted=lifted)


def _common(largest: Tensor, present: Tensor | None, masks: Masks) -> Tensor:
    """The largest exponent of all rows (1,), where those of the rows (B,) are near enough, else these.

    Off one exponent for all, the exponentials of a batch with itself are those of both orders of a pair.
    """
    if not (masks.known and masks.symmetric and present is None):
        return largest
    least, most = torch.aminmax(largest)
    return most.view(1) if most.item() - least.item() < _APART else largest


def _circle_shifted(loss: Any, v: Tensor, masks: Masks) -> Slopes:
    m, gamma = loss.margin, loss.gamma
    to_one, to_none = (1 + m - v).clamp_min_(0), (v + m).clamp_min_(0)
    pulls, pushes = (1 - m - v).mul_(to_one).mul_(gamma), (v - m).mul_(to_none).mul_(gamma)
    pull, near, has_positive = _sums(pulls, masks.positive, None)
    push, far, has_negative = _sums(pushes, masks.negative, None)
    present = has_positive * has_negative
    both = (pull + push) * present
    value, weight = reduce.rows(loss.reducer, softplus(both).squeeze(1), present.squeeze(1))
    weight = _column(weight * (gamma * LIFT)) * ordinary(both.sigmoid())
    return Slopes(value, far.mul_(to_none).sub_(near.mul_(to_one)).mul_(weight), lifted=LIFT)
