"""Hinge losses on a whole distance matrix: value and derivative by each entry, with static shapes.

Each function takes the loss, the values (B, R), the masks of positive and negative pairs as numbers (B, R)
and the loss's own tensor or None, and returns value, slope (B, R) and the derivative by the own tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.all_triplets import HingeTripletsTerm
from losslib.kernels import reduce
from losslib.reducers import AvgNonZeroReducer, SumReducer

Slopes = tuple[Tensor, Tensor, Tensor | None]


def contrastive(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """ContrastiveLoss."""
    margin, reducer, sign = loss.distance.margin, loss.reducer, -1.0 if loss.distance.is_inverted else 1.0
    near = margin(v, loss.pos_margin).clamp_min_(0).mul_(positive)
    far = margin(loss.neg_margin, v).clamp_min_(0).mul_(negative)
    total, parts = None, []
    for hinge, mask in ((near, positive), (far, negative)):
        values = hinge.square() / 2 if loss.squared else hinge
        each = reduce.share(reducer, mask, values)
        part = values.sum() * each
        total = part if total is None else total + part
        parts.append((hinge if loss.squared else hinge.sign_()).mul_(each * sign))
    assert total is not None
    return total, parts[0].sub_(parts[1]), None


def threshold_consistent(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """ThresholdConsistentMarginLoss; NaN keeps no threshold, so it stays among the violating pairs."""
    low = torch.logical_not(v > loss.margin_plus).to(v.dtype).mul_(positive)
    high = torch.logical_not(v < loss.margin_minus).to(v.dtype).mul_(negative)
    by_low = loss.lambda_plus * reduce.one_over(low.sum(), v.dtype)
    by_high = loss.lambda_minus * reduce.one_over(high.sum(), v.dtype)
    value = ((loss.margin_plus - v) * low).sum() * by_low + ((v - loss.margin_minus) * high).sum() * by_high
    return value, high.mul_(by_high).sub_(low.mul_(by_low)), None


def margin(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: Tensor) -> Slopes:
    """MarginLoss over all triplets, its penalty on a learned beta included; own: beta of each anchor."""
    sign = -1.0 if loss.distance.is_inverted else 1.0
    from_boundary = (v - own) if sign > 0 else (own - v)
    near = (from_boundary + loss.margin).clamp_min_(0).mul_(positive)
    far = (loss.margin - from_boundary).clamp_min_(0).mul_(negative)
    positives, negatives = positive.sum(1), negative.sum(1)
    total = (near.sum(1) * negatives + far.sum(1) * positives).sum()
    near, far = near.sign_().mul_(negatives.unsqueeze(1)), far.sign_().mul_(positives.unsqueeze(1))
    over = near.sum(1, dtype=torch.float64), far.sum(1, dtype=torch.float64)
    count = (over[0] + over[1]).sum()
    each = ((count > 0) / count.clamp_min(1)).to(v.dtype)  # 0 without any, as the penalty's share is then
    by_boundary = ((over[1] - over[0]).to(v.dtype) * each * sign).unsqueeze(1)
    value = total * each
    if loss.learn_beta:
        triplets = positives * negatives
        times = triplets * each if own.ndim == 2 else (triplets.sum() > 0).to(v.dtype)
        penalty = loss.nu * own.squeeze(-1) * times
        value = value + penalty.sum()
        by_boundary = (
            by_boundary.sum() + loss.nu * times
            if own.ndim == 1
            else by_boundary + (loss.nu * times).unsqueeze(1)
        )
    return value, near.sub_(far).mul_(each * sign), by_boundary


def triplets(loss: Any, v: Tensor, positive: Tensor, negative: Tensor, own: None) -> Slopes:
    """TripletMarginLoss over all triplets, by sorted rows."""
    inverted = loss.distance.is_inverted
    term = HingeTripletsTerm(-v if inverted else v, positive.bool(), negative.bool(), loss.margin)
    of_positive, of_negative = term.active()
    kind = type(loss.reducer)
    number = of_positive.sum() if kind is AvgNonZeroReducer else term.count()
    each = reduce.one_over(number, v.dtype) if kind is not SumReducer else 1.0
    slope = (of_positive - of_negative).to(v.dtype).mul_(-each if inverted else each)
    return term.sum() * each, slope, None
