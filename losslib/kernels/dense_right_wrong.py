"""NCALoss and InstanceLoss on a whole distance matrix, as those of `dense_softmax`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.kernels import reduce
from losslib.kernels.dense_hinges import Slopes, _both
from losslib.kernels.dense_softmax import _FAR, _SPAN, _column, _exponentials, _highest, _scale, _sums
from losslib.kernels.masks import Masks
from losslib.softmax import softplus

# Exponentials from e^-45 to e^40 instead of up to 1, and slopes times 2^40, are ordinary numbers, and so are
# their products and what divides by them: subnormal numbers are slow, and beyond the largest there is none.
RAISED = 40.0
LIFT = 2.0**40
_STEEP = 30.0  # from here on the pulls of right ones may be subnormal all the same, and
_FLOOR = 1e-28  # what is added and taken away again leaves none below a ten-millionth of it


def nca(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """NCALoss."""
    scale = loss.softmax_scale
    return _right_against_wrong(loss, v, masks, masks.positive, scale, _highest(loss, _scale(loss, scale)))


def instance(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """InstanceLoss.

    A row's similarity to itself does not change with the row, so that its slope leads to no gradient. Being
    1, it keeps the right ones' sum of exponentials above 0 whatever they are taken off.
    """
    gamma, right = loss.gamma, masks.positive_or_own
    highest = gamma if masks.with_own and gamma <= _SPAN else _highest(loss, gamma)
    return _right_against_wrong(loss, v, masks, right, gamma, highest, always=masks.with_own)


def _right_against_wrong(
    loss: Any,
    v: Tensor,
    masks: Masks,
    right: Tensor,
    scale: float,
    highest: float | None,
    always: bool = False,
) -> Slopes:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one.

    always: whether every row has one.
    """
    outer = _scale(loss, scale)
    if highest is not None:
        far = _exponentials(v, outer, highest - RAISED)
        near = far * right
        far = masks.keep_pairs_(far.sub_(near)) if masks.whole else far.mul_(masks.negative)
        of_near, of_far = near.sum(1), far.sum(1)
        present = None if always else masks.some(of_near)
        of_near = of_near if present is None else of_near + (1 - present)
        share = of_far / of_near
        value, weight = reduce.rows(loss.reducer, share.log1p(), present)
        weight = weight * (outer * LIFT) / (of_near + of_far)
        far.mul_(_both(weight, masks.symmetric))
        share = _both(weight * share, masks.symmetric)
        if abs(outer) < _STEEP:
            far.sub_(near.mul_(share))
        else:
            far.sub_(torch.addcmul(near.new_full((), _FLOOR), near, share)).add_(_FLOOR)
        return Slopes(value, far, both=masks.symmetric, lifted=LIFT)
    logits = v * outer
    near, pull, right_ones = _sums(logits.clone(), right, None)
    far, push, some = _sums(logits, masks.negative, None)
    both = (far - near) * some + (some - 1) * _FAR
    values = (softplus(both) * right_ones).squeeze(1)
    value, weight = reduce.rows(loss.reducer, values, right_ones.squeeze(1))
    weight = _column(weight) * both.sigmoid() * outer
    return Slopes(value, push.sub_(pull).mul_(weight))
