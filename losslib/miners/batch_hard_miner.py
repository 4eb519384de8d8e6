"""The hardest triplet of each anchor."""

from __future__ import annotations

from losslib.miners.base import Candidates
from losslib.miners.batch_easy_hard_miner import BatchEasyHardMiner
from losslib.types import PairIndices, TripletIndices


class BatchHardMiner(BatchEasyHardMiner):
    """The farthest positive and the nearest negative of each anchor, as one triplet.

    Hermans, Beyer, Leibe 2017, "In Defense of the Triplet Loss for Person Re-Identification", equation 5. An
    anchor without a positive or without a negative gives none. Equal distances: the first.

    Returns TripletIndices. Memory: the distance matrix.
    """

    summary = "The farthest positive and the nearest negative of each anchor."

    pos_strategy = "hard"  # settled, not an option
    neg_strategy = "hard"

    def mine(self, candidates: Candidates) -> TripletIndices:
        """One triplet for each anchor that has both sides."""
        found = super().mine(candidates)
        assert isinstance(found, PairIndices)
        return TripletIndices(found.pos_anchors, found.positives, found.negatives)
