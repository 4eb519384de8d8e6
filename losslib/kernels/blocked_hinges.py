"""Hinges on single pairs, in blocks: ContrastiveLoss, ThresholdConsistentMarginLoss, MarginLoss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocks import DistanceBlocks, PositiveDistances, Precision
from losslib.kernels.function import Found
from losslib.kernels.positives import Positives
from losslib.kernels.scratch import constant, lease, take
from losslib.kernels.sorted_rows import Block, SortedRows


@dataclass
class Side:
    """The hinges of all positive or of all negative pairs: beyond a threshold, weighted.

    weight: of a pair by its anchor, (N,) and the same for all of a class, or one number.
    inclusive: whether a pair exactly at the threshold counts.
    """

    threshold: float
    weight: Tensor | float = 1.0
    inclusive: bool = False
    total: float = 0.0
    count: float = 0.0


class Hinges:
    """Sums, counts and pulls of both sides of a loss."""

    def __init__(self, loss: Any, x: Tensor, batch: Batch, wanted: bool) -> None:
        assert batch.labels is not None
        self.sorted = SortedRows(x, batch.labels, loss.distance)
        self.blocks = DistanceBlocks(self.sorted, loss.distance, True, self.sorted.block_rows)
        self.wanted, self.inverted = wanted, loss.distance.is_inverted
        self.of_positives: Tensor | None = None  # what positives pull on the rows

    def run(self, positives: Side, negatives: Side) -> None:
        """One pass over all pairs."""
        if self.wanted and max(self.sorted.counts) > 1:
            rows = self.sorted.rows.given
            self.of_positives = take(*rows.shape, dtype=rows.dtype).zero_()
        for some in self.sorted.positives():
            with lease():  # of what these need
                self._positives(positives, some)
        for block in self.sorted.blocks():
            values, at = self.blocks.of(block, negatives.threshold)
            if values is not None:
                with lease():  # of what one block needs
                    self._negatives(negatives, block, values, at)

    def _positives(self, side: Side, some: Positives) -> None:
        near = None if self.inverted else PositiveDistances(self.blocks, some)
        values = some.products(self.sorted.rows.unit) if near is None else near.values
        mask = some.mask(values) if near is None else near.mask
        beyond = self._beyond(side.threshold, values, inside=False)
        active = take(*beyond.shape, dtype=beyond.dtype)
        if side.inclusive:
            torch.ge(beyond, 0.0, out=active).mul_(mask)
            hinges = beyond.clamp_min_(0).mul_(mask)
        else:
            hinges = beyond.clamp_min_(0).mul_(mask)
            torch.sign(hinges, out=active)
        weight: Tensor | float = side.weight
        if isinstance(weight, Tensor):
            weight = some.anchors(weight).unsqueeze(2)
            sums, counts = hinges.sum(2, keepdim=True), active.sum(2, keepdim=True)
            side.total += float((sums * weight).sum(dtype=torch.float64))
            side.count += float((counts * weight).sum(dtype=torch.float64))
            active.mul_(weight)
        else:
            side.total += float(hinges.sum()) * weight
            side.count += float(active.sum()) * weight
        if not self.wanted:
            return
        assert self.of_positives is not None
        if near is not None:
            near.pull(self.of_positives, active)
        else:
            some.add_product(self.of_positives, active, some.everyone(self.sorted.rows.unit))

    def _negatives(self, side: Side, block: Block, values: Tensor, at: Precision) -> None:
        beyond = self._beyond(side.threshold, values, inside=True)
        active = None
        if side.inclusive:
            active = torch.ge(beyond, 0.0, out=take(*beyond.shape, dtype=beyond.dtype))
        hinges = beyond.clamp_min_(0)
        side.total += self._weighed(side, hinges, block)
        active = hinges.sign_() if active is None else active
        count = self._weighed(side, active, block)
        side.count += count
        if not self.wanted or not count:
            return
        if isinstance(side.weight, Tensor):
            own = side.weight[block.start : block.stop].to(active.dtype).unsqueeze(1)
            others = side.weight[block.start :].to(active.dtype)
            active.mul_(torch.add(own, others, out=take(*active.shape, dtype=active.dtype)))
        if not self.inverted:
            active.div_(values if at is not self.blocks.exact else torch.threshold(values, 0.0, torch.inf))
        self.blocks.pull(at, block, active)

    def _beyond(self, threshold: float, values: Tensor, inside: bool) -> Tensor:
        """By how much pairs are nearer than the threshold (`inside`) or farther; negative elsewhere."""
        out = take(*values.shape, dtype=values.dtype)
        if inside != self.inverted:
            return torch.sub(constant(threshold, values), values, out=out)
        return torch.sub(values, threshold, out=out)

    def _weighed(self, side: Side, entries: Tensor, block: Block) -> float:
        """The sum of a block's entries over all pairs, each pair in both orders."""
        size = block.stop - block.start  # pairs within the block come in both orders already
        if not isinstance(side.weight, Tensor):
            total = float(entries.sum())
            if size < entries.shape[1]:
                total = 2 * total - float(entries[:, :size].sum())
            return total * side.weight
        beyond = entries[:, size:]
        own, others = side.weight[block.start : block.stop], side.weight[block.stop :]
        return float(entries.sum(1).double() @ own.double() + beyond.sum(0).double() @ others.double())

    def gradient(self, sides: tuple[Side, Side], each: list[float]) -> Tensor:
        """The gradient by the embeddings, from what the sum of each side's hinges is multiplied by."""
        # weights of one number are still to be multiplied by; a negative pair's are those of both its rows
        near = each[0] * (1.0 if isinstance(sides[0].weight, Tensor) else sides[0].weight)
        far = each[1] * (1.0 if isinstance(sides[1].weight, Tensor) else 2 * sides[1].weight)
        return self.blocks.gradient(far, self.of_positives, -2 * near)


def _number_of_pairs(rows: SortedRows) -> tuple[float, float]:
    """Ordered positive and negative pairs of a batch."""
    return rows.pairs, len(rows) * (len(rows) - 1) - rows.pairs


def contrastive(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """ContrastiveLoss without squares."""
    hinges = Hinges(loss, x, batch, wanted)
    sides = Side(loss.pos_margin), Side(loss.neg_margin)
    hinges.run(*sides)
    numbers = _number_of_pairs(hinges.sorted)
    each = [
        reduce.each(loss.reducer, number, side.count) for number, side in zip(numbers, sides, strict=True)
    ]
    value = x.new_tensor(sum(side.total * share for side, share in zip(sides, each, strict=True)))
    return Found(value, hinges.gradient(sides, each) if wanted else None)


def threshold_consistent(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """ThresholdConsistentMarginLoss."""
    hinges = Hinges(loss, x, batch, wanted)
    sides = Side(loss.margin_plus, inclusive=True), Side(loss.margin_minus, inclusive=True)
    hinges.run(*sides)
    each = [
        scale / max(side.count, 1.0)
        for side, scale in zip(sides, (loss.lambda_plus, loss.lambda_minus), strict=True)
    ]
    value = x.new_tensor(sum(side.total * share for side, share in zip(sides, each, strict=True)))
    return Found(value, hinges.gradient(sides, each) if wanted else None)


def margin(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """MarginLoss over all triplets with one beta, its penalty included."""
    hinges = Hinges(loss, x, batch, wanted)
    toward = -loss.margin if not loss.distance.is_inverted else loss.margin
    counts = hinges.sorted.counts
    sizes: Any = float(counts[0]) if min(counts) == max(counts) else hinges.sorted.sizes
    at = float(loss._beta_of_anchors(batch))
    # a positive pair is part of as many triplets as its anchor has negatives, and the other way round
    sides = Side(at + toward, len(hinges.sorted) - sizes), Side(at - toward, sizes - 1)
    hinges.run(*sides)
    count = sides[0].count + sides[1].count
    share = 1 / count if count else 0.0
    value = (sides[0].total + sides[1].total) * share
    by_beta = (sides[1].count - sides[0].count) * share * (-1.0 if loss.distance.is_inverted else 1.0)
    if loss.learn_beta and 1 < max(counts) < len(hinges.sorted):
        value, by_beta = value + loss.nu * at, by_beta + loss.nu
    return Found(
        x.new_tensor(value),
        hinges.gradient(sides, [share, share]) if wanted else None,
        None,
        loss.beta.new_full(loss.beta.shape, by_beta) if loss.learn_beta else None,
    )
