"""The informative pairs of the multi-similarity paper."""

from __future__ import annotations

import torch

from losslib.distances import CosineSimilarity
from losslib.miners.base import CAP, Candidates, Miner
from losslib.params import Param, finite
from losslib.types import PairIndices


class MultiSimilarityMiner(Miner):
    """Positives no nearer than the nearest negative, and negatives no farther than the farthest positive.

    With `epsilon` of slack: a positive pair is taken when s_ap - epsilon < max s_an, a negative one when
    s_an + epsilon > min s_ap (Wang, Han, Huang, Dong, Scott 2019, "Multi-Similarity Loss", equations 5
    and 6; distances with the inequalities turned). An anchor that lacks positives or negatives has no pair.

    Returns PairIndices. Memory: the distance matrix and the result.
    """

    summary = "Positives farther than the nearest negative, negatives nearer than the farthest positive."
    default_distance = CosineSimilarity

    epsilon = Param(
        0.1,
        valid=finite,
        explore=(0.0, 0.5),
        symbol=r"\epsilon",
        meaning="slack of both comparisons",
        larger="more pairs",
    )
    tuples_per_anchor = CAP

    def mine(self, candidates: Candidates) -> PairIndices:
        """The pairs that overlap with the other side."""
        separation = candidates.separation
        if separation.numel() == 0:
            return candidates.pairs(candidates.positive, candidates.negative)
        nearest = separation.masked_fill(candidates.negative.logical_not(), torch.inf).amin(1, keepdim=True)
        farthest = separation.masked_fill(candidates.positive.logical_not(), -torch.inf).amax(1, keepdim=True)
        both = candidates.positive.any(1, keepdim=True) & candidates.negative.any(1, keepdim=True)
        return candidates.pairs(
            both & (separation + self.epsilon > nearest), both & (separation - self.epsilon < farthest)
        )
