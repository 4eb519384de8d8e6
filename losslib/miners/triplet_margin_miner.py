"""Triplets that violate a margin."""

from __future__ import annotations

from torch import Tensor

from losslib.miners.base import CAP, Candidates, Miner
from losslib.miners.blocks import chosen_triplets
from losslib.params import Choice, Param, finite
from losslib.types import TripletIndices


class TripletMarginMiner(Miner):
    """Triplets whose negative is not farther than the positive by more than a margin, or those that are.

    With g = d(a, n) - d(a, p): "all" takes g <= margin, "hard" those of them with g <= 0 (the negative is no
    farther than the positive), "semihard" those with g > 0, and "easy" the rest, g > margin. Semihard
    triplets are those of Schroff, Kalenichenko, Philbin 2015, "FaceNet", section 3.2.

    Returns TripletIndices. Memory: the distance matrix and the result.
    """

    summary = "Triplets that violate a margin: all, hard, semihard, or the easy rest."

    margin = Param(
        0.2,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m",
        meaning="by how much a negative must be farther than a positive",
        larger="more triplets",
    )
    type_of_triplets = Param(
        "all",
        valid=Choice("all", "hard", "semihard", "easy"),
        explore=("all", "hard", "semihard", "easy"),
        meaning="which triplets are taken",
    )
    tuples_per_anchor = CAP

    def mine(self, candidates: Candidates) -> TripletIndices:
        """The triplets of the type asked for."""
        separation = candidates.separation

        def choose(anchors: Tensor, positives: Tensor) -> Tensor:
            gap = separation[anchors] - separation[anchors, positives].unsqueeze(1)
            if self.type_of_triplets == "easy":
                return gap > self.margin
            violating = gap <= self.margin
            if self.type_of_triplets == "all":
                return violating
            return violating & (gap <= 0 if self.type_of_triplets == "hard" else gap > 0)

        return chosen_triplets(candidates, choose, self.tuples_per_anchor)
