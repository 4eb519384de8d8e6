"""The hardest share of all pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from losslib.miners.base import CAP, Candidates, Miner
from losslib.params import Interval, Param
from losslib.types import PairIndices


class HDCMiner(Miner):
    """The hardest share of the batch's positive pairs, and the same share of its negative pairs.

    Hard means far for a positive and near for a negative pair; the share is rounded up (Yuan, Yang, Zhang
    2017, "Hard-Aware Deeply Cascaded Embedding", section 3.2). The whole batch is ranked, not each anchor.

    Returns PairIndices. Memory: the distance matrix and the result.
    """

    summary = "The hardest share of all positive pairs and of all negative pairs."

    filter_percentage = Param(
        0.5,
        valid=Interval(0.0, 1.0, closed="right"),
        explore=(0.1, 1.0),
        meaning="share of the pairs that is taken",
        larger="more and easier pairs",
    )
    tuples_per_anchor = CAP

    def mine(self, candidates: Candidates) -> PairIndices:
        """The hardest pairs of both sides."""
        near = self._hardest(candidates.separation, *candidates.positives(), largest=True)
        return PairIndices(
            *near, *self._hardest(candidates.separation, *candidates.negatives(), largest=False)
        )

    def _hardest(
        self, separation: Tensor, anchors: Tensor, others: Tensor, largest: bool
    ) -> tuple[Tensor, Tensor]:
        number = math.ceil(self.filter_percentage * len(anchors) * (1 - 1e-12))  # 0.07 of 100 is 7, not 8
        _, kept = torch.topk(separation[anchors, others], number, largest=largest, sorted=False)
        kept, _ = kept.sort()
        return anchors[kept], others[kept]
