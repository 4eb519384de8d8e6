"""Hinge losses in blocks of whole rows: with references, squared, or with a boundary for every class."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.dense_hinges import _penalty
from losslib.kernels.function import Found, Inputs
from losslib.kernels.row_blocks import Part, RowBlocks
from losslib.kernels.scratch import take


class _Side:
    """The hinges of all positive or of all negative pairs: how far they are beyond a threshold.

    inclusive: whether a pair exactly at the threshold counts. squared: half the squares of the hinges.
    """

    def __init__(
        self, blocks: RowBlocks, positive: bool, inclusive: bool = False, squared: bool = False
    ) -> None:
        self.blocks, self.positive, self.inclusive, self.squared = blocks, positive, inclusive, squared
        self.sign = 1.0 if positive != blocks.inverted else -1.0  # of the slope by the values
        self.total, self.count = 0.0, 0.0

    def add(self, part: Part, threshold: float | Tensor, weight: Tensor | None = None) -> Tensor:
        """Count a block's hinges and pull by them; the number of each row's, weighted, (b,).

        threshold: one number or one a row, (b, 1). weight: of each row, (b,).
        """
        values = part.band_values() if self.positive else part.values
        beyond = torch.sub(values, threshold, out=take(*values.shape, dtype=values.dtype)).mul_(self.sign)
        if self.inclusive:  # NaN is not below 0: it stays
            active = torch.lt(beyond, beyond.new_zeros(1), out=take(*beyond.shape, dtype=beyond.dtype))
            active = self._mask_(part, active.neg_().add_(1))
            hinges = beyond.mul_(active)
        else:
            hinges = self._mask_(part, beyond.clamp_min_(0))
            active = hinges
        terms = hinges.square().div_(2) if self.squared else hinges
        sums = terms.sum(1).double()
        counts = (terms if self.squared else active).sign_().sum(1).double()
        if weight is not None:
            sums, counts = sums * weight, counts * weight
            active.mul_(weight.to(active.dtype).unsqueeze(1))
        number = float(counts.sum())
        self.total += float(sums.sum())
        self.count += number
        if number and (self.blocks.x.wanted or self.blocks.y.wanted):
            self.blocks.pull(part, active, int(not self.positive), band=self.positive)
        return counts

    def _mask_(self, part: Part, entries: Tensor) -> Tensor:
        if self.positive:
            return entries.mul_(part.positive)
        entries[:, part.band].mul_(1 - part.same)
        return entries


def _found(blocks: RowBlocks, sides: tuple[_Side, _Side], each: list[float], value: float) -> Found:
    by_x, by_y = blocks.gradients([side.sign * by for side, by in zip(sides, each, strict=True)])
    return Found(blocks.x.rows.given.new_tensor(value), by_x, by_y)


def _summed(sides: tuple[_Side, _Side], each: list[float]) -> float:
    return sum(side.total * by for side, by in zip(sides, each, strict=True))


def contrastive(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """ContrastiveLoss."""
    blocks = RowBlocks(loss, x, batch, needs, sides=2)
    sides = _Side(blocks, True, squared=loss.squared), _Side(blocks, False, squared=loss.squared)
    for part in blocks.parts():
        sides[0].add(part, loss.pos_margin)
        sides[1].add(part, loss.neg_margin)
    numbers = float(blocks.positives.sum()), float(blocks.negatives.sum())
    each = [
        reduce.each(loss.reducer, number, side.count) for number, side in zip(numbers, sides, strict=True)
    ]
    return _found(blocks, sides, each, _summed(sides, each))


def threshold_consistent(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """ThresholdConsistentMarginLoss."""
    blocks = RowBlocks(loss, x, batch, needs, sides=2)
    sides = _Side(blocks, True, inclusive=True), _Side(blocks, False, inclusive=True)
    for part in blocks.parts():
        sides[0].add(part, loss.margin_plus)
        sides[1].add(part, loss.margin_minus)
    scales = loss.lambda_plus, loss.lambda_minus
    each = [scale / max(side.count, 1.0) for side, scale in zip(sides, scales, strict=True)]
    return _found(blocks, sides, each, _summed(sides, each))


def margin(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """MarginLoss over all triplets: a pair counts once for each pair of the other kind of its anchor."""
    blocks = RowBlocks(loss, x, batch, needs, sides=2)
    sides = _Side(blocks, True), _Side(blocks, False)
    beta: Tensor = loss._beta_of_anchors(batch)
    if beta.ndim == 2:
        beta = beta.index_select(0, blocks.x.order)
    toward = loss.margin if blocks.inverted else -loss.margin
    positives, negatives = blocks.positives.double(), blocks.negatives.double()
    of_anchors = torch.zeros(len(blocks.x), dtype=torch.float64)  # by the beta of each
    for part in blocks.parts():
        at = beta[part.here] if beta.ndim == 2 else beta
        near = sides[0].add(part, at + toward, negatives[part.here])
        far = sides[1].add(part, at - toward, positives[part.here])
        of_anchors[part.here] = (near - far) * -sides[0].sign
    count = sides[0].count + sides[1].count
    each = 1 / count if count else 0.0
    value, by_parameter = _summed(sides, [each, each]), None
    if loss.learn_beta:
        by_boundary = (of_anchors * each).to(beta.dtype).unsqueeze(1)
        penalty, by_boundary = _penalty(loss, beta, (positives * negatives).to(beta.dtype), each, by_boundary)
        value += float(penalty)
        by_parameter = by_beta(loss, by_boundary, blocks.x.labels)
    found = _found(blocks, sides, [each, each], value)
    return found._replace(by_parameter=by_parameter if needs[2] else None)


def by_beta(loss: Any, by_boundary: Tensor, labels: Tensor) -> Tensor:
    """The gradient by the loss's beta, from that by the beta of each anchor; labels (B,) of the anchors."""
    by_boundary = by_boundary.reshape(-1)
    if loss.num_classes is None:
        return by_boundary.sum().to(loss.beta.dtype).expand_as(loss.beta)
    total = by_boundary.new_zeros(loss.beta.shape)  # of half precision only when all is added up
    return total.index_add(0, labels.long(), by_boundary).to(loss.beta.dtype)
