"""Triplets with a wide angle at the negative."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from losslib.distances import LpDistance
from losslib.miners.base import CAP, Candidates, Miner, needs_euclidean
from losslib.miners.blocks import chosen_triplets
from losslib.params import Interval, Param
from losslib.types import TripletIndices


class AngularMiner(Miner):
    """Triplets whose negative sees anchor and positive under a wide angle.

    The angle is that of the angular loss (Wang, Zhou, Wen, Liu, Lin 2017, "Deep Metric Learning with Angular
    Loss", section 3.2): tan(angle) = |a - p| / (2 |n - c|), where c is the middle between a and p. A triplet
    at one point has no angle and is not taken.

    Returns TripletIndices. The distance is the Euclidean one, of normalised embeddings or not; in
    pytorch-metric-learning embeddings are never normalised here. Memory: the distance matrix and the result.
    """

    summary = "Triplets whose negative sees anchor and positive under a wide angle."

    angle = Param(
        20.0,
        valid=Interval(0.0, 90.0, closed="left"),
        explore=(5.0, 60.0),
        symbol=r"\alpha",
        meaning="angle that a triplet must exceed",
        larger="fewer triplets",
        unit="degrees",
    )
    tuples_per_anchor = CAP

    def check_distance(self, distance: Any) -> None:
        """Only the Euclidean distance has these angles."""
        needs_euclidean(self, distance, normalised=False)

    def mine(self, candidates: Candidates) -> TripletIndices:
        """The triplets beyond the angle."""
        anchor = self.distance.normalize(candidates.batch.embeddings)
        other = self.distance.normalize(candidates.batch.references)
        plain, slope = LpDistance(normalize_embeddings=False), math.tan(math.radians(self.angle))

        def choose(anchors: Tensor, positives: Tensor) -> Tensor:
            middle = (anchor[anchors] + other[positives]) / 2
            width = candidates.values[anchors, positives].unsqueeze(1)
            wide: Tensor = width > 2 * slope * plain(middle, other)
            return wide

        return chosen_triplets(candidates, choose, self.tuples_per_anchor)
