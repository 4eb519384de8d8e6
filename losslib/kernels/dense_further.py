"""AngularLoss and GeneralizedLiftedStructureLoss on a whole distance matrix, as those of `dense_softmax`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.dense_hinges import Slopes
from losslib.kernels.dense_softmax import _column, _highest, _sums
from losslib.kernels.masks import Masks
from losslib.softmax import softplus

LARGEST_EXPONENT = 20.0  # of a factor of the angular loss's exponentials: a sum of products stays below e^60


def generalized_lifted(loss: Any, v: Tensor, masks: Masks, own: None) -> Slopes:
    """GeneralizedLiftedStructureLoss."""
    sign = -1.0 if loss.distance.is_inverted else 1.0
    highest = _highest(loss, sign, loss.pos_margin), _highest(loss, -sign, loss.neg_margin)
    pull, near, _ = _sums((v - loss.pos_margin).mul_(sign), masks.positive, highest[0])
    push, far, _ = _sums((v - loss.neg_margin).mul_(-sign), masks.negative, highest[1])
    values = (pull + push).squeeze(1).relu_()
    value, weight = reduce.rows(loss.reducer, values, masks.has_pairs)
    return Slopes(value, near.sub_(far).mul_(_column(weight * values.sign() * sign)))


def angular(loss: Any, v: Tensor, masks: Masks, squares: Tensor) -> Slopes:
    """AngularLoss of a batch with itself; squares: of the norms of its unit rows, (B,), 0 for a zero row."""
    tangent, inverted = math.tan(math.radians(loss.alpha)) ** 2, loss.distance.is_inverted
    dots = v if inverted else ((squares.unsqueeze(1) + squares) - v.square()).div_(2)
    raised = (dots * (4 * tangent)).exp_()
    far = raised * masks.negative
    sums = far @ raised
    excess = sums.log().sub_(dots, alpha=2 + 2 * tangent)  # -inf without negatives: a value of 0
    values = softplus(excess).mul_(masks.positive)
    each = reduce.share(loss.reducer, masks.positive, values)
    chance = excess.sigmoid_().mul_(masks.positive).mul_(each)
    weight = chance / (sums + (sums == 0).to(sums.dtype))
    slope = (weight @ raised).mul_(far).addcmul_(weight.t() @ far, raised).mul_(4 * tangent)
    slope.sub_(chance, alpha=2 + 2 * tangent)
    return Slopes(values.sum() * each, slope if inverted else slope.mul_(v).neg_())


def squares(loss: Any, batch: Batch) -> Tensor | None:
    """The squares of the norms of the batch's unit rows, (B,); None where the dot products are at hand."""
    if loss.distance.is_inverted:
        return None
    x = batch.embeddings
    return (torch.count_nonzero(x, 1) > 0).to(x.dtype)
