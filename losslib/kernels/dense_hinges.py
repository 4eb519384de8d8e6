"""Hinge losses on a whole distance matrix: value and derivative by each entry, with static shapes.

Each function takes the loss, the values (B, R), which it may overwrite only where it says so, the masks of
the pairs and the loss's own tensor or None.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from losslib.all_triplets import HingeTripletsTerm
from losslib.kernels import reduce
from losslib.kernels.masks import Masks
from losslib.kernels.reduce import Number, total
from losslib.kernels.scratch import constant, leased, room, take
from losslib.reducers import AvgNonZeroReducer, SumReducer

_FAR = 1e30
_EXACT = 1 << 26  # B * R * R up to which the number of triplets is exact in single precision
_AT_ONCE = 1 << 21  # comparisons of all triplets, those of a batch of 128 in whatever classes


class Slopes(NamedTuple):
    """What a dense form finds.

    value: of the loss, reduced.
    slope: its derivative by the values, (B, R).
    by_own: that by the loss's own tensor.
    both: whether the slope, of a batch with itself, is that of both orders of a pair together.
    lifted: what the slope is multiplied by.
    """

    value: Number
    slope: Tensor
    by_own: Tensor | None = None
    both: bool = False
    lifted: float = 1.0


def contrastive(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """ContrastiveLoss."""
    reducer, inverted = loss.reducer, loss.distance.is_inverted
    far = masks.keep_negatives_(_hinge(loss, v, loss.neg_margin, -1.0))
    if loss.pos_margin == 0 and not inverted:  # a distance is its own hinge
        near = torch.mul(v, masks.positive, out=room(v))
    else:
        near = _hinge(loss, v, -loss.pos_margin, 1.0).mul_(masks.positive)
    value: Number = 0.0
    each: list[Number] = []
    for hinge, count in ((near, lambda: masks.positives), (far, lambda: masks.negatives)):
        values = hinge.square() / 2 if loss.squared else hinge
        part = total(values)
        if isinstance(part, float) and part == 0:
            each.append(0.0)
            continue
        signs = values if loss.squared else hinge.sign_()
        by = reduce.share(reducer, count, signs, signs=not loss.squared)
        value = value + part * by
        each.append(by * _orders(masks, inverted))
    slope, lifted = reduce.difference_(near, each[0], far, each[1])
    return Slopes(value, slope, both=masks.symmetric, lifted=lifted)


def _hinge(loss: Any, v: Tensor, margin: float, sign: float) -> Tensor:
    """margin + sign * v where that is above 0, else 0; both turned round for a similarity."""
    if loss.distance.is_inverted:
        margin, sign = -margin, -sign
    return _shifted(v, margin, sign).clamp_min_(0)


def _shifted(v: Tensor, by: float, sign: float, out: Tensor | None = None) -> Tensor:
    """by + sign * v, in `out`."""
    return torch.add(constant(by, v), v, alpha=sign, out=room(v) if out is None else out)


def _orders(masks: Masks, inverted: bool) -> float:
    """The sign of a slope, twice where it is that of both orders of a pair."""
    return (-1.0 if inverted else 1.0) * (2.0 if masks.symmetric else 1.0)


def threshold_consistent(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """ThresholdConsistentMarginLoss."""
    high = masks.keep_negatives_(_within(torch.ge, v, loss.margin_minus))
    low = _within(torch.le, v, loss.margin_plus).mul_(masks.positive)
    push, by_high = _mean_beyond(v, high, loss.margin_minus, 1.0, loss.lambda_minus)
    pull, by_low = _mean_beyond(v, low, loss.margin_plus, -1.0, loss.lambda_plus)
    if isinstance(by_high, float) and isinstance(by_low, float) and not by_high and not by_low:
        push = total(v) * 0.0  # NaN, which reaches no threshold, stays
    orders = _orders(masks, False)
    slope, lifted = reduce.difference_(high, by_high * orders, low, by_low * orders)
    return Slopes(pull + push, slope, both=masks.symmetric, lifted=lifted)


def _mean_beyond(
    v: Tensor, within: Tensor, threshold: float, sign: float, weight: float
) -> tuple[Number, Number]:
    """weight times the mean of sign * (v - threshold) where `within` is 1, and its derivative by each."""
    count = total(within)
    if isinstance(count, float) and count == 0:
        return 0.0, 0.0
    by = weight * reduce.one_over(count, v.dtype)
    return total(_shifted(v, -sign * threshold, sign).mul_(within)) * by, by


def _within(how: Any, v: Tensor, threshold: float) -> Tensor:
    """1 where the values are on one side of the threshold, or on it, else 0."""
    within: Tensor
    within = how(v, constant(threshold, v), out=room(v)) if leased() else how(v, threshold).to(v.dtype)
    return within


def margin(loss: Any, v: Tensor, masks: Masks, own: Tensor) -> Slopes:
    """MarginLoss over all triplets, its penalty on a learned beta included; own: beta of each anchor."""
    sign = -1.0 if loss.distance.is_inverted else 1.0
    far = masks.keep_negatives_(_beyond(v, loss.margin, own, -sign))
    both = masks.symmetric and own.ndim == 1
    if both and not loss.learn_beta and (numbers := masks.alike):
        near = _beyond(masks.within(v), loss.margin, own, sign).mul_(masks.near)
        return _alike(masks, near, far, *numbers, sign)
    near = _beyond(v, loss.margin, own, sign).mul_(masks.positive)
    positives, negatives = masks.positives, masks.negatives
    sums = reduce.number((near.sum(1) @ negatives).add_(far.sum(1) @ positives))
    of_near, of_far = near.sign_().sum(1), far.sign_().sum(1)
    few = v.numel() * v.shape[1] <= _EXACT
    count = reduce.number(_dot(of_near, negatives, few).add_(_dot(of_far, positives, few)))
    each = _over_count(count, v.dtype)  # 0 without any, as the penalty's share is then
    value, by_boundary = sums * each, None
    if loss.learn_beta:
        by_boundary = ((of_far * positives - of_near * negatives) * (each * sign)).unsqueeze(1)
        penalty, by_boundary = _penalty(loss, own, positives * negatives, each, by_boundary)
        value = value + penalty
    # both rows of a positive pair have as many negatives
    slope = near.mul_(negatives.unsqueeze(1))
    # in place of the mask, which nothing needs any more
    slope.addcmul_(far, _both(positives, both, masks.positive), value=-0.5 if both else -1.0)
    slope, lifted = reduce.times_(slope, each * (sign * (2 if both else 1)))
    return Slopes(value, slope, by_boundary, both, lifted)


def _alike(
    masks: Masks, near: Tensor, far: Tensor, positives: float, negatives: float, sign: float
) -> Slopes:
    """The mean hinge over all triplets of a batch with itself, whose anchors have as many pairs each.

    A pair's hinge counts once for each pair of the other kind.
    """
    sum_ = negatives * total(near) + positives * total(far)
    count = negatives * total(near.sign_()) + positives * total(far.sign_())
    if count == 0:
        return Slopes(sum_ * 0.0, far.zero_(), both=True)
    slope, lifted = masks.difference_(near, 2 * sign * negatives / count, far, 2 * sign * positives / count)
    return Slopes(sum_ / count, slope, both=True, lifted=lifted)


def _beyond(v: Tensor, margin: float, own: Tensor, sign: float) -> Tensor:
    """margin + sign * (v - own) where that is above 0, else 0."""
    if own.ndim == 1 and leased():  # one boundary for all
        return _shifted(v, margin - sign * own.item(), sign).clamp_min_(0)
    return torch.add(margin - own * sign, v, alpha=sign, out=room(v)).clamp_min_(0)


def _dot(a: Tensor, b: Tensor, few: bool) -> Tensor:
    """The dot product (0-d) of whole numbers, which single precision might not hold unless it is of few."""
    return a @ b if few else a.double() @ b.double()


def _over_count(count: Number, dtype: torch.dtype) -> Number:
    if isinstance(count, Tensor):
        return ((count > 0) / count.clamp_min(1)).to(dtype)
    return 1 / count if count else 0.0


def _penalty(
    loss: Any, own: Tensor, triplets: Tensor, each: Number, by_boundary: Tensor
) -> tuple[Tensor, Tensor]:
    """MarginLoss's penalty on its beta, and the derivative by the beta of each anchor with it."""
    if own.ndim == 2:
        times = triplets * each
        by_boundary = by_boundary + (loss.nu * times).unsqueeze(1)
    else:
        times = (triplets.sum() > 0).to(own.dtype)
        by_boundary = by_boundary.sum() + loss.nu * times
    return (loss.nu * own.squeeze(-1) * times).sum(), by_boundary


def _both(of_rows: Tensor, symmetric: bool, out: Tensor) -> Tensor:
    """A coefficient (B,) of each row as that of its entries, (B, 1), or in `out` of both orders of a pair."""
    column = of_rows.unsqueeze(1)
    return torch.add(column, of_rows, out=out) if symmetric else column


def triplets(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """TripletMarginLoss over all triplets: written out where they are few, else by sorted rows."""
    inverted, kind = loss.distance.is_inverted, type(loss.reducer)
    separation = -v if inverted else v
    most = int(masks.positives.amax().item()) if masks.known else 0
    if masks.known and v.numel() * most <= _AT_ONCE:
        sum_, slope, active = _written_out(separation, masks, loss.margin, max(most, 1))
    else:
        term = HingeTripletsTerm(separation, masks.positive.bool(), masks.negative.bool(), loss.margin)
        of_positive, of_negative = term.active()
        slope, active = (of_positive - of_negative).to(v.dtype), of_positive.sum()
        sum_ = term.sum()
    each: Number = 1.0
    if kind is AvgNonZeroReducer:
        each = reduce.one_over(active, v.dtype)
    elif kind is not SumReducer:
        each = reduce.one_over(masks.positives.double() @ masks.negatives.double(), v.dtype)
    slope, lifted = reduce.times_(slope, -each if inverted else each)
    return Slopes(sum_ * each, slope, lifted=lifted)


def _written_out(separation: Tensor, masks: Masks, margin: float, most: int) -> tuple[Number, Tensor, Number]:
    """Sum of all hinges, its slope, and the number of those above 0. most: positives of an anchor."""
    no_negative = masks.positive_or_own if masks.whole else 1 - masks.negative
    near = torch.sub(separation, 1 - masks.positive, alpha=_FAR, out=room(separation))
    near, places = near.topk(most, dim=1, sorted=False)
    # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
    farthest = near.amax(1, keepdim=True)
    placed = torch.sub(separation, farthest, out=room(separation))
    near = near.sub_(farthest).add_(margin).unsqueeze(2)
    far = torch.add(placed, no_negative, alpha=_FAR, out=room(separation)).unsqueeze(1)
    count, width = placed.shape
    active = torch.gt(near, far, out=take(count, most, width, dtype=placed.dtype))
    of_positive = active.sum(2)
    # an anchor with fewer positives has places of others too, of which none is active
    slope = active.sum(1).neg_().scatter_add_(1, places, of_positive)
    number = total(of_positive)
    return total(placed.mul_(slope)) + margin * number, slope, number
