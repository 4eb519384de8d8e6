"""Softmax losses in blocks of whole rows, each row's exponentials off its own largest logit.

A row's log-sum-exp depends on that row alone, so that one pass gives value and gradient, with any scale of
the logits, values without a bound, and references.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.decoupled_weights import Weights
from losslib.kernels.function import Found, Inputs
from losslib.kernels.row_blocks import FAR, Part, RowBlocks
from losslib.kernels.scratch import room
from losslib.kernels.steep import LEAST, LIFT, ordinary
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import softplus

# values, how many they are, LIFT times the slope by the values
OfPart = Callable[[Part], tuple[Tensor, Tensor, Tensor]]


def sup_con(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """SupConLoss."""
    scale, above = _sign(loss) / loss.temperature, type(loss.reducer) is AvgNonZeroReducer

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        present = (part.positives > 0).to(part.same.dtype)
        counts = part.positives.clamp_min(1)
        logits = part.scaled(scale)
        mean = (logits[:, part.band] * part.positive).sum(1) / counts
        largest, share = _exponentials(part.without_own(logits, -FAR))
        part.without_own(share, 0.0)
        sums = share.sum(1)
        values = torch.where(present > 0, sums.log() + largest.squeeze(1) - mean, 0.0)
        weight = present
        if above:
            values = values.relu_()
            weight = values.sign()
        share.mul_((weight / sums.clamp_min(1e-37)).mul_(scale * LIFT).unsqueeze(1))
        share[:, part.band].sub_(part.positive * (weight / counts).mul_(scale * LIFT).unsqueeze(1))
        return values, present, share

    return _reduced(loss, x, batch, needs, of)


def nt_xent(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """NTXentLoss."""
    scale = _sign(loss) / loss.temperature

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        near = part.near(scale)
        highest, sums, share = _of_negatives(part, part.scaled(scale))
        excess = near.neg_().add_(highest)
        values = softplus(excess).mul_(part.positive)
        chance = ordinary(excess.sigmoid_()).mul_(part.positive).mul_(scale * LIFT)
        share.mul_(chance.sum(1, keepdim=True) / sums)
        share[:, part.band].sub_(chance)
        return values, part.positives, share

    return _reduced(loss, x, batch, needs, of)


def decoupled(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """DecoupledContrastiveLoss, with and without sigma."""
    scale = _sign(loss) / loss.temperature
    blocks = RowBlocks(loss, x, batch, needs)
    weights = None if loss.sigma is None else _weights_of(loss, blocks)

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        some = (part.negatives > 0).to(part.same.dtype)
        kept = part.positives * some
        near = part.near(scale)
        highest, sums, share = _of_negatives(part, part.scaled(scale))
        if weights is None:
            pull, slope = near.mul_(part.positive), part.positive * (some * (scale * LIFT)).unsqueeze(1)
        else:
            near.div_(loss.sigma / loss.temperature)
            pull, slope = weights.of(near, part.positive, some)
            slope.mul_(_sign(loss) * LIFT)
        values = torch.where(kept > 0, highest.squeeze(1) * kept - pull.sum(1), 0.0)
        share.mul_((kept / sums.squeeze(1)).mul_(scale * LIFT).unsqueeze(1))
        share[:, part.band].sub_(slope)
        return values, kept, share

    return _reduced(loss, x, batch, needs, of, blocks)


def _weights_of(loss: Any, blocks: RowBlocks) -> Weights:
    """The first pass: what the weights of all positive pairs share."""
    weights = Weights(loss)
    for part in blocks.parts(band_alone=True):
        some = (part.negatives > 0).to(part.same.dtype)
        weights.add(part.near(_sign(loss) / loss.sigma), part.positive, some)
    return weights


def multi_similarity(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """MultiSimilarityLoss."""
    sign = _sign(loss)

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        near = part.near(-sign * loss.alpha, loss.base)
        most, of_near, pull = _of_right(near, part.positive, part.positives)
        highest, of_far, push = _of_negatives(part, part.scaled(sign * loss.beta, loss.base))
        present = (part.positives + part.negatives > 0).to(push.dtype)
        values = (softplus(most) / loss.alpha + softplus(highest) / loss.beta).squeeze(1) * present
        push.mul_(ordinary(highest.sigmoid_()).mul_(sign * LIFT) / of_far)
        push[:, part.band].sub_(pull.mul_(ordinary(most.sigmoid_()).mul_(sign * LIFT) / of_near))
        return values, present, push

    return _reduced(loss, x, batch, needs, of)


def generalized_lifted(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """GeneralizedLiftedStructureLoss."""
    sign = _sign(loss)

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        near = part.near(-sign, loss.pos_margin)
        most, of_near, pull = _of_right(near, part.positive, part.positives)
        highest, of_far, push = _of_negatives(part, part.scaled(sign, loss.neg_margin))
        some, others = (part.positives > 0).unsqueeze(1), (part.negatives > 0).unsqueeze(1)
        values = torch.where(some, most, 0.0).add_(torch.where(others, highest, 0.0)).relu_()
        weight = values.sign().mul_(sign * LIFT)
        push.mul_(weight / of_far)
        push[:, part.band].sub_(pull.mul_(weight / of_near))
        return values.squeeze(1), (some | others).to(values.dtype), push

    return _reduced(loss, x, batch, needs, of)


def circle(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    above = type(loss.reducer) is AvgNonZeroReducer

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        # with r = max(1 - s, -m) the logits of the positives are gamma (r^2 - m^2), weighted by r + m,
        apart = torch.rsub(part.band_values(), 1).clamp_min_(-m)
        less = apart.new_full((1,), -gamma * m * m)
        pulls = torch.addcmul(less, apart, apart, value=gamma, out=room(apart))
        # those of the negatives with w = max(s, -m) gamma (w^2 - m^2), weighted by w + m
        within = part.values.clamp_min_(-m)
        pushes = torch.addcmul(less, within, within, value=gamma, out=room(within))
        most, of_near, pull = _of_right(pulls, part.positive, part.positives)
        highest, of_far, push = _of_negatives(part, pushes)
        present = ((part.positives > 0) & (part.negatives > 0)).to(push.dtype).unsqueeze(1)
        logits = torch.where(present > 0, most + highest, 0.0)
        values = softplus(logits) * present
        weight = ordinary(logits.sigmoid_()).mul_(values.sign() if above else present).mul_(gamma * LIFT)
        push.mul_(within.add_(m)).mul_(weight / of_far)
        push[:, part.band].sub_(pull.mul_(apart.add_(m)).mul_(weight / of_near))
        return values.squeeze(1), present, push

    return _reduced(loss, x, batch, needs, of)


def nca(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """NCALoss."""
    return _right_against_wrong(loss, x, batch, needs, loss.softmax_scale, own=False)


def instance(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """InstanceLoss: where the references are the batch itself, a row is among its own right ones."""
    own = x.references is None or batch.among_itself
    return _right_against_wrong(loss, x, batch, needs, loss.gamma, own)


def _right_against_wrong(
    loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...], scale: float, own: bool
) -> Found:
    """log(1 + sum of exp over the wrong / sum over the right ones) of each row with a right one."""
    scale *= _sign(loss)
    above = type(loss.reducer) is AvgNonZeroReducer
    # a softmax does not see small distances, whose squares are off by the rounding of 1 at most
    blocks = RowBlocks(loss, x, batch, needs, near=getattr(loss.distance, "power", 1) == 1)

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        right = part.same if own else part.positive
        most, of_right, pull = _of_right(part.near(scale), right, part.positives + int(own))
        present = (most > -FAR).to(pull.dtype)
        highest, of_wrong, push = _of_negatives(part, part.scaled(scale))
        excess = torch.where(present > 0, highest - most, -FAR)
        values = softplus(excess)
        weight = ordinary(excess.sigmoid_()).mul_(values.sign() if above else 1.0).mul_(scale * LIFT)
        if own and blocks.x.rows.normalised:  # a unit row's similarity to itself does not change
            part.without_own(pull, 0.0)
        push.mul_(weight / of_wrong)
        push[:, part.band].sub_(pull.mul_(weight / of_right))
        return values.squeeze(1), present, push

    return _reduced(loss, x, batch, needs, of, blocks)


def _sign(loss: Any) -> float:
    return 1.0 if loss.distance.is_inverted else -1.0


def _exponentials(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Each row's largest logit (b, 1), 0 for a row of none; in the logits' place the exponentials off it."""
    if not logits.shape[1]:
        return logits.new_zeros(len(logits), 1), logits
    largest = logits.amax(1, keepdim=True)
    return largest, logits.sub_(largest).clamp_(min=LEAST, max=0.0).exp_()


Sums = tuple[Tensor, Tensor, Tensor]  # log-sum-exp (b, 1), -FAR of none; sums (b, 1), 1 of none; exponentials


def _of_negatives(part: Part, logits: Tensor) -> Sums:
    """The sums over the negatives; the exponentials take the logits' place."""
    logits[:, part.band].sub_(part.same, alpha=2 * FAR)
    largest, share = _exponentials(logits)
    share[:, part.band].mul_(1 - part.same)
    return _summed(largest, share, part.negatives)


def _of_right(logits: Tensor, right: Tensor, number: Tensor) -> Sums:
    """The same over the entries of the band in a mask, so many (b,) of each row."""
    largest, share = _exponentials(logits.sub_(1 - right, alpha=2 * FAR))
    return _summed(largest, share.mul_(right), number)


def _summed(largest: Tensor, share: Tensor, number: Tensor) -> Sums:
    some = (number > 0).to(share.dtype).unsqueeze(1)
    sums = share.sum(1, keepdim=True) + (1 - some)
    return torch.where(some > 0, sums.log() + largest, -FAR), sums, share


def _reduced(
    loss: Any,
    given: Inputs,
    batch: Batch,
    needs: tuple[bool, ...],
    of: OfPart,
    blocks: RowBlocks | None = None,
) -> Found:
    """The sum of a loss's values over all blocks, reduced, with the gradients."""
    blocks = RowBlocks(loss, given, batch, needs) if blocks is None else blocks
    total, above, number = 0.0, 0.0, 0.0
    for part in blocks.parts():
        values, counts, slope = of(part)
        total += float(values.sum(dtype=torch.float64))
        above += float(torch.count_nonzero(values))
        number += float(counts.sum(dtype=torch.float64))
        if any(needs):
            blocks.pull(part, slope)
    each = reduce.each(loss.reducer, number, above)
    value = given.embeddings.new_tensor(total * each)
    if not any(needs):
        return Found(value)
    return Found(value, *blocks.gradients([each / LIFT]))
