"""NCALoss and InstanceLoss on a whole distance matrix, as those of `dense_softmax`."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from losslib.kernels import reduce
from losslib.kernels.dense_hinges import Slopes, _both
from losslib.kernels.dense_softmax import (
    _FAR,
    SPAN,
    _column,
    _exponentials,
    _highest,
    _scale,
    _spare,
    _sums,
)
from losslib.kernels.masks import Masks
from losslib.kernels.scratch import again, room
from losslib.kernels.steep import LIFT, ordinary
from losslib.softmax import softplus

# Exponentials from e^-45 to e^40 instead of up to 1, and slopes times `lift`, are ordinary numbers, and so
# are their products and what divides by them: subnormal numbers are slow, and the largest has an end.
RAISED = 40.0


def lift(own: bool) -> float:
    """What slopes are multiplied by; own: whether a row itself is among its right ones.

    It is far above what the others add up to, so that their pulls are the smaller.
    """
    return 2.0**60 if own else 2.0**40


def nca(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """NCALoss."""
    scale = loss.softmax_scale
    highest = _highest(loss, _scale(loss, scale))
    if highest is None:
        return _shifted(loss, v, masks, masks.positive, scale)
    every = masks.keep_pairs_(_exponentials(v, _scale(loss, scale), highest - RAISED, _spare(loss, v)))
    return _raised(loss, every, masks, scale, own=False)


def instance(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """InstanceLoss.

    A row's similarity to itself does not change with the row, so that its slope leads to no gradient. Being
    1, it keeps the right ones' sum of exponentials above 0 whatever they are taken off.
    """
    gamma = loss.gamma
    highest = gamma if masks.with_own and gamma <= SPAN else _highest(loss, gamma)
    if highest is None:
        return _shifted(loss, v, masks, masks.positive_or_own, gamma)
    every = v.mul_(gamma).exp_()  # at most e^SPAN, so that a sum of 100,000 of them is a number
    if not masks.whole:
        every.mul_(masks.positive_or_own + masks.negative)
    return _raised(loss, every, masks, gamma, own=masks.with_own)


def _raised(loss: Any, every: Tensor, masks: Masks, scale: float, own: bool) -> Slopes:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one.

    every: the exponentials of wrong and right ones, 0 elsewhere, which it overwrites. own: whether a row
    itself is right.
    """
    near, far = masks.split_(every, own)
    of_near, of_far = masks.sums(near), far.sum(1)
    present = None if own else masks.some(of_near)
    of_near = of_near if present is None else of_near + (1 - present)
    share = of_far / of_near
    value, weight = reduce.rows(loss.reducer, share.log1p(), present)
    weight = of_near.add_(of_far).reciprocal_().mul_(weight * (_scale(loss, scale) * lift(own)))
    part = room(far)
    far.mul_(_both(weight, masks.symmetric, part))
    both = masks.both(share.mul_(weight), again(part, near))
    masks.within(far).addcmul_(near, both, value=-1)
    return Slopes(value, far, both=masks.symmetric, lifted=lift(own))


def _shifted(loss: Any, v: Tensor, masks: Masks, right: Tensor, scale: float) -> Slopes:
    """The same of logits without a bound, off each row's largest."""
    logits = v * _scale(loss, scale)
    near, pull, right_ones = _sums(logits.clone(), right, None)
    far, push, some = _sums(logits, masks.negative, None)
    both = (far - near) * some + (some - 1) * _FAR
    values = (softplus(both) * right_ones).squeeze(1)
    value, weight = reduce.rows(loss.reducer, values, right_ones.squeeze(1))
    weight = _column(weight) * ordinary(both.sigmoid()) * (_scale(loss, scale) * LIFT)
    return Slopes(value, push.sub_(pull).mul_(weight), lifted=LIFT)
