"""One positive and one negative for each anchor: easy, semihard or hard."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.errors import ParameterError
from losslib.inputs import Indices
from losslib.miners.base import CAP, Candidates, Miner
from losslib.miners.value_range import ValueRange
from losslib.params import Choice, Optional, Param
from losslib.types import PairIndices

_STRATEGIES = ("easy", "semihard", "hard", "all")


class BatchEasyHardMiner(Miner):
    """The easiest, the hardest or a semihard positive and negative of each anchor, or all of them.

    An easy positive is the nearest, a hard one the farthest, and a semihard one the farthest that is nearer
    than the anchor's negative. An easy negative is the farthest, a hard one the nearest, and a semihard one
    the nearest that is farther than the anchor's positive (Xuan, Stylianou, Pless 2020, "Improved Embeddings
    with Easy Positive Triplet Mining"). "all" takes every pair of its side, each for itself.

    An anchor without both is left out, but with "all" on one side the other side asks nothing of it. Equal
    distances: the first. Returns PairIndices, row t of both sides being one anchor's unless a side is "all".
    Raises ParameterError for "semihard" on both sides or beside "all". Memory: the distance matrix.

    Differs from pytorch-metric-learning: an allowed range restricts the pairs of "all" too.
    """

    summary = "The easiest, the hardest or a semihard positive and negative of each anchor."

    pos_strategy = Param(
        "easy",
        valid=Choice(*_STRATEGIES),
        explore=_STRATEGIES,
        meaning="which positive of each anchor is taken",
        title="Positive strategy",
    )
    neg_strategy = Param(
        "semihard",
        valid=Choice(*_STRATEGIES),
        explore=_STRATEGIES,
        meaning="which negative of each anchor is taken",
        title="Negative strategy",
    )
    allowed_pos_range = Param(
        None,
        valid=Optional(ValueRange()),
        meaning="range (lo, hi) of the distances of positive pairs, both ends included; none for any",
        title="Allowed range of positives",
    )
    allowed_neg_range = Param(
        None,
        valid=Optional(ValueRange()),
        meaning="range (lo, hi) of the distances of negative pairs, both ends included; none for any",
        title="Allowed range of negatives",
    )
    tuples_per_anchor = CAP

    def prepare(self) -> None:
        """Refuse strategies that wait for each other."""
        both = (self.pos_strategy, self.neg_strategy)
        if both in (("semihard", "semihard"), ("semihard", "all"), ("all", "semihard")):
            raise ParameterError(
                f"{type(self).__name__}: semihard needs easy or hard on the other side, got "
                f"pos_strategy={both[0]!r} and neg_strategy={both[1]!r}"
            )

    def mine(self, candidates: Candidates) -> Indices:
        """One pair of each side for each anchor, or all."""
        self.prepare()
        values, separation = candidates.values, candidates.separation
        positive = _within(values, candidates.positive, self.allowed_pos_range)
        negative = _within(values, candidates.negative, self.allowed_neg_range)
        if separation.numel() == 0:
            return PairIndices(*positive.nonzero(as_tuple=True), *negative.nonzero(as_tuple=True))
        if self.pos_strategy == "semihard":
            far = _one(separation, negative, farthest=self.neg_strategy == "easy")
            positive = positive & (separation < separation.gather(1, far)) & negative.any(1, keepdim=True)
        near = _one(separation, positive, farthest=self.pos_strategy != "easy")
        if self.neg_strategy == "semihard":
            negative = negative & (separation > separation.gather(1, near)) & positive.any(1, keepdim=True)
        far = _one(separation, negative, farthest=self.neg_strategy == "easy")
        has_positive, has_negative = positive.any(1), negative.any(1)
        if "all" not in (self.pos_strategy, self.neg_strategy):
            has_positive = has_negative = has_positive & has_negative
        near_side = _listed(positive, near, has_positive, self.pos_strategy)
        return PairIndices(*near_side, *_listed(negative, far, has_negative, self.neg_strategy))


def _within(values: Tensor, mask: Tensor, allowed: tuple[float, float] | None) -> Tensor:
    return mask if allowed is None else mask & (values >= allowed[0]) & (values <= allowed[1])


def _one(separation: Tensor, mask: Tensor, farthest: bool) -> Tensor:
    """Column of the farthest (or nearest) entry of each row under the mask, (B, 1); any for an empty row."""
    if farthest:
        return separation.masked_fill(mask.logical_not(), -torch.inf).argmax(1, keepdim=True)
    return separation.masked_fill(mask.logical_not(), torch.inf).argmin(1, keepdim=True)


def _listed(mask: Tensor, column: Tensor, rows: Tensor, strategy: str) -> tuple[Tensor, Tensor]:
    """Anchors and others: every pair of the mask, or the chosen column of the given rows."""
    if strategy == "all":
        anchors, others = mask.nonzero(as_tuple=True)
        return anchors, others
    anchors = rows.nonzero().squeeze(1)
    return anchors, column.squeeze(1)[anchors]
