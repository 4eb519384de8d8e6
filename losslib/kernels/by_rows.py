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
from losslib.kernels.row_blocks import FAR, LEAST, Part, RowBlocks
from losslib.kernels.scratch import take
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import softplus

OfPart = Callable[[Part], tuple[Tensor, Tensor, Tensor]]  # values, how many they are, slope by the values


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
        share.mul_((weight / sums.clamp_min(1e-37)).mul_(scale).unsqueeze(1))
        share[:, part.band].sub_(part.positive * (weight / counts).mul_(scale).unsqueeze(1))
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
        chance = excess.sigmoid_().mul_(part.positive).mul_(scale)
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
            pull, slope = near.mul_(part.positive), part.positive * (some * scale).unsqueeze(1)
        else:
            near.div_(loss.sigma / loss.temperature)
            pull, slope = weights.of(near, part.positive, some)
            slope.mul_(_sign(loss))
        values = torch.where(kept > 0, highest.squeeze(1) * kept - pull.sum(1), 0.0)
        share.mul_((kept / sums.squeeze(1)).mul_(scale).unsqueeze(1))
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
        pull, by_near = _log1p_sums(near.sub_(1 - part.positive, alpha=2 * FAR))
        logits = part.scaled(sign * loss.beta, loss.base)
        logits[:, part.band].sub_(part.same, alpha=2 * FAR)
        push, slope = _log1p_sums(logits)
        present = (part.positives + part.negatives > 0).to(part.same.dtype)
        values = (pull.div_(loss.alpha) + push.div_(loss.beta)) * present
        slope[:, part.band].mul_(1 - part.same).sub_(by_near.mul_(part.positive))
        return values, present, slope.mul_(sign)

    return _reduced(loss, x, batch, needs, of)


def circle(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """CircleLoss, the weights of the pairs taken as constants."""
    m, gamma = loss.margin, loss.gamma
    above = type(loss.reducer) is AvgNonZeroReducer

    def of(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        near = part.near(1.0)
        to_one = (1 + m - near).clamp_min_(0)
        near = torch.rsub(near, 1 - m).mul_(to_one).mul_(gamma).sub_(1 - part.positive, alpha=2 * FAR)
        to_none = torch.add(part.values, m, out=take(*part.values.shape, dtype=near.dtype)).clamp_min_(0)
        pushes = part.values.sub_(m).mul_(to_none).mul_(gamma)
        pushes[:, part.band].sub_(part.same, alpha=2 * FAR)
        (most, pull), (highest, push) = _exponentials(near), _exponentials(pushes)
        pull.mul_(part.positive)
        push[:, part.band].mul_(1 - part.same)
        sums = pull.sum(1, keepdim=True), push.sum(1, keepdim=True)
        present = ((part.positives > 0) & (part.negatives > 0)).to(near.dtype).unsqueeze(1)
        logits = torch.where(present > 0, sums[0].log() + most + sums[1].log() + highest, 0.0)
        values = softplus(logits) * present
        weight = logits.sigmoid_().mul_(values.sign() if above else present).mul_(gamma)
        push.mul_(to_none).mul_(weight / sums[1].clamp_min(1e-37))
        push[:, part.band].sub_(pull.mul_(to_one).mul_(weight / sums[0].clamp_min(1e-37)))
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
        most, pull = _exponentials(part.near(scale).sub_(1 - right, alpha=2 * FAR))
        pull.mul_(right)
        sums = pull.sum(1, keepdim=True)
        present = (part.positives + int(own) > 0).to(pull.dtype).unsqueeze(1)
        highest, of_wrong, push = _of_negatives(part, part.scaled(scale))
        excess = torch.where(present > 0, highest - (sums.log() + most), -FAR)
        values = softplus(excess)
        weight = excess.sigmoid_().mul_(values.sign() if above else 1.0).mul_(scale)
        if own and blocks.x.rows.normalised:  # a unit row's similarity to itself does not change
            part.without_own(pull, 0.0)
        push.mul_(weight / of_wrong)
        push[:, part.band].sub_(pull.mul_(weight / sums.clamp_min(1e-37)))
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


def _of_negatives(part: Part, logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-sum-exp over the negatives (b, 1), far below everything without any; their sums of exponentials
    (b, 1), 1 without any; in the logits' place the exponentials."""
    logits[:, part.band].sub_(part.same, alpha=2 * FAR)
    largest, share = _exponentials(logits)
    share[:, part.band].mul_(1 - part.same)
    some = (part.negatives > 0).to(share.dtype).unsqueeze(1)
    sums = share.sum(1, keepdim=True) + (1 - some)
    return torch.where(some > 0, sums.log() + largest, -FAR), sums, share


def _log1p_sums(logits: Tensor) -> tuple[Tensor, Tensor]:
    """log(1 + sum of exp) of each row (b,), and in the logits' place its derivative by each of them.

    Entries far below everything do not count, but have a derivative of next to nothing.
    """
    if not logits.shape[1]:
        return logits.new_zeros(len(logits)), logits
    largest = logits.amax(1, keepdim=True).clamp_min_(0)
    below = logits.sub_(largest).clamp_(min=LEAST, max=0.0)
    share = below.exp_()
    beyond = share.sum(1, keepdim=True).add_(torch.expm1(-largest))  # e^-m + sum, less 1
    return (beyond.log1p() + largest).squeeze(1), share.div_(beyond.add_(1))


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
    return Found(value, *blocks.gradients([each]))
