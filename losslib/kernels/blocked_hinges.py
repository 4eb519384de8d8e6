"""Hinges on single pairs, in blocks: ContrastiveLoss, ThresholdConsistentMarginLoss, MarginLoss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels.blocks import FAR, DistanceBlocks, Precision
from losslib.kernels.function import Found
from losslib.kernels.scratch import lease, take
from losslib.kernels.sorted_rows import Block, SortedRows
from losslib.reducers import AvgNonZeroReducer, SumReducer


@dataclass
class Side:
    """The hinges of all positive or of all negative pairs: beyond a threshold, weighted.

    weight: of a pair in both its orders: the sum of two rows' entries (N,), or one number.
    inclusive: whether a pair exactly at the threshold counts.
    """

    threshold: float
    weight: Tensor | float = 2.0
    inclusive: bool = False
    total: float = 0.0
    count: float = 0.0


class Hinges:
    """Sums, counts and pulls of both sides of a loss."""

    def __init__(self, loss: Any, x: Tensor, batch: Batch, wanted: bool) -> None:
        assert batch.labels is not None
        self.sorted = SortedRows(x, batch.labels, loss.distance)
        self.blocks = DistanceBlocks(self.sorted, loss.distance, 2, upper=True)
        self.wanted, self.inverted = wanted, loss.distance.is_inverted

    def run(self, positives: Side, negatives: Side) -> None:
        """One pass over all pairs."""
        for block in self.sorted.blocks():
            values, at = self.blocks.of(block)
            with lease():  # of what one block needs
                self._block(positives, negatives, block, values, at)

    def _block(self, positives: Side, negatives: Side, block: Block, values: Tensor, at: Precision) -> None:
        width, size = block.high - block.start, block.stop - block.start
        same = self.sorted.same(block, block.start, block.high)
        far = self._beyond(negatives.threshold, values, inside=True)
        far[:, :width].sub_(same, alpha=FAR)
        self._add(negatives, 1, far, values, at, block)
        same[:, :size].triu_(1)
        band = values[:, :width]
        near = self._beyond(positives.threshold, band, inside=False)
        self._add(positives, 0, near.sub_(same.neg_().add_(1), alpha=2 * FAR), band, at, block)

    def _beyond(self, threshold: float, values: Tensor, inside: bool) -> Tensor:
        """By how much pairs are nearer than the threshold (`inside`) or farther; negative elsewhere."""
        out = take(*values.shape, dtype=values.dtype)
        if inside != self.inverted:
            return torch.sub(values.new_full((1,), threshold), values, out=out)
        return torch.sub(values, threshold, out=out)

    def _add(
        self, side: Side, number: int, beyond: Tensor, values: Tensor, at: Precision, block: Block
    ) -> None:
        active = None
        if side.inclusive:
            zero = beyond.new_zeros(1)
            active = torch.ge(beyond, zero, out=take(*beyond.shape, dtype=beyond.dtype))
        hinges = beyond.clamp_min_(0)
        total = self._weighed(side, hinges, block)
        side.total += total
        if active is None:
            if total == 0:
                return
            active = hinges.sign_()
        count = self._weighed(side, active, block)
        side.count += count
        if self.wanted and count:
            self._pull(side, number, active, values, at, block)

    def _weighed(self, side: Side, entries: Tensor, block: Block) -> float:
        if not isinstance(side.weight, Tensor):
            return float(entries.sum()) * side.weight
        own = side.weight[block.start : block.stop]
        others = side.weight[block.start : block.start + entries.shape[1]]
        by_row = entries.sum(1, dtype=torch.float64) @ own
        return float(by_row + entries.sum(0, dtype=torch.float64) @ others)

    def _pull(
        self, side: Side, number: int, active: Tensor, values: Tensor, at: Precision, block: Block
    ) -> None:
        if isinstance(side.weight, Tensor):
            own = side.weight[block.start : block.stop].to(active.dtype).unsqueeze(1)
            others = side.weight[block.start : block.start + active.shape[1]].to(active.dtype)
            active.mul_(own + others)
        if not self.inverted:
            active.div_(values if at is not self.blocks.exact else torch.threshold(values, 0.0, torch.inf))
        self.blocks.pull(at, number, block, active, block.start)


def _number_of_pairs(rows: SortedRows) -> tuple[float, float]:
    """Ordered positive and negative pairs of a batch."""
    positives = float((rows.sizes.double() - 1).sum())
    return positives, float(len(rows) * (len(rows) - 1)) - positives


def contrastive(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """ContrastiveLoss without squares."""
    hinges = Hinges(loss, x, batch, wanted)
    sides = Side(loss.pos_margin), Side(loss.neg_margin)
    hinges.run(*sides)
    kind = type(loss.reducer)
    counts = [side.count for side in sides] if kind is AvgNonZeroReducer else _number_of_pairs(hinges.sorted)
    each = [1.0 if kind is SumReducer else 1 / max(count, 1.0) for count in counts]
    value = x.new_tensor(sum(side.total * share for side, share in zip(sides, each, strict=True)))
    return Found(value, _gradient(hinges, sides, each) if wanted else None)


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
    return Found(value, _gradient(hinges, sides, each) if wanted else None)


def margin(loss: Any, x: Tensor, batch: Batch, wanted: bool) -> Found:
    """MarginLoss over all triplets with one beta, its penalty included."""
    hinges = Hinges(loss, x, batch, wanted)
    beta, sizes = loss._beta_of_anchors(batch), hinges.sorted.sizes.double()
    toward = -loss.margin if not loss.distance.is_inverted else loss.margin
    positives, negatives = sizes - 1, len(x) - sizes
    at = float(beta)
    sides = Side(at + toward, _even(negatives)), Side(at - toward, _even(positives))
    hinges.run(*sides)
    count = sides[0].count + sides[1].count
    share = 1 / count if count else 0.0
    value = (sides[0].total + sides[1].total) * share
    by_beta = (sides[1].count - sides[0].count) * share * (-1.0 if loss.distance.is_inverted else 1.0)
    if loss.learn_beta and bool(positives @ negatives > 0):
        value, by_beta = value + loss.nu * at, by_beta + loss.nu
    return Found(
        x.new_tensor(value),
        _gradient(hinges, sides, [share, share]) if wanted else None,
        None,
        loss.beta.new_full(loss.beta.shape, by_beta) if loss.learn_beta else None,
    )


def _even(weight: Tensor) -> Tensor | float:
    """Weights of a pair's rows, as one number for both where all are the same."""
    first = float(weight[0])
    return 2 * first if bool((weight == first).all()) else weight


def _gradient(hinges: Hinges, sides: tuple[Side, Side], each: list[float]) -> Tensor:
    # farther positives pull their rows together, nearer negatives push theirs apart
    sign = -1.0 if hinges.inverted else 1.0
    by = [share * _even_weight(side) for share, side in zip(each, sides, strict=True)]
    return hinges.blocks.gradient([sign * by[0], -sign * by[1]])


def _even_weight(side: Side) -> float:
    """The weight of every pair, which the pulls are still to be multiplied by."""
    return 1.0 if isinstance(side.weight, Tensor) else side.weight
