"""Pairs on the wrong side of a margin."""

from __future__ import annotations

from losslib.miners.base import CAP, Candidates, Miner
from losslib.params import Param, finite
from losslib.types import PairIndices


class PairMarginMiner(Miner):
    """Positive pairs farther than one margin and negative pairs nearer than another.

    Margins are values of the miner's distance; a similarity turns the inequalities.

    Returns PairIndices. Memory: the distance matrix and the result.
    """

    summary = "Positive pairs farther than one margin and negative pairs nearer than another."

    pos_margin = Param(
        0.2,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m_{pos}",
        meaning="distance over which a positive pair is taken",
        larger="fewer positive pairs",
        title="Positive margin",
    )
    neg_margin = Param(
        0.8,
        valid=finite,
        explore=(0.0, 2.0),
        symbol="m_{neg}",
        meaning="distance under which a negative pair is taken",
        larger="more negative pairs",
        title="Negative margin",
    )
    tuples_per_anchor = CAP

    def mine(self, candidates: Candidates) -> PairIndices:
        """The pairs beyond their margin."""
        margin = self.distance.margin
        far = margin(candidates.values, self.pos_margin) > 0
        return candidates.pairs(far, margin(self.neg_margin, candidates.values) > 0)
