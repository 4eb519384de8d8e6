"""Negatives drawn evenly over all distances."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.miners.base import CAP, Candidates, Miner, needs_euclidean
from losslib.params import Interval, Param, positive
from losslib.types import TripletIndices


class DistanceWeightedMiner(Miner):
    """One triplet for each positive pair, its negative drawn so that all distances are equally likely.

    On the unit sphere in D dimensions distances crowd about sqrt(2) with density
    q(d) = d^(D-2) (1 - d^2 / 4)^((D-3)/2); negatives are drawn in proportion to 1 / q(max(d, cutoff)) by
    torch's generator (Wu, Manmatha, Smola, Krähenbühl 2017, "Sampling Matters in Deep Embedding Learning",
    section 4). A negative at `nonzero_loss_cutoff` or beyond is never drawn, so that in many dimensions an
    anchor may have no triplet.

    Returns TripletIndices. Weights are logarithms shifted for each anchor, so that no dimension is too many;
    in pytorch-metric-learning they are shifted by one number for the whole batch, and each positive may be
    drawn several times or not at all. Memory: the distance matrix.
    """

    summary = "One negative for each positive pair, drawn so that all distances are equally likely."

    cutoff = Param(
        0.5,
        valid=Interval(0.0, 2.0, closed="neither"),
        explore=(0.1, 1.0),
        symbol=r"\lambda",
        meaning="distance under which all negatives are equally likely",
        larger="fewer of the very near negatives",
    )
    nonzero_loss_cutoff = Param(
        1.4,
        valid=positive,
        explore=(0.8, 2.0),
        meaning="distance from which on negatives are never drawn",
        larger="far negatives too",
    )
    tuples_per_anchor = CAP

    def check_distance(self, distance: Any) -> None:
        """The density is that of distances on the unit sphere."""
        needs_euclidean(self, distance, normalised=True)

    def mine(self, candidates: Candidates) -> TripletIndices:
        """A negative for each positive pair of an anchor that has one in reach."""
        in_reach = candidates.negative & (candidates.values < self.nonzero_loss_cutoff)
        positive_pairs = candidates.positive & in_reach.any(1, keepdim=True)
        anchors, positives = positive_pairs.nonzero(as_tuple=True)
        if len(anchors) == 0:
            return TripletIndices(anchors, positives, anchors.clone())
        counts = positive_pairs.sum(1)
        first = counts.cumsum(0) - counts
        place = torch.arange(len(anchors), device=anchors.device) - first[anchors]
        weights = self._weights(candidates.values, in_reach, candidates.batch.embeddings.shape[1])
        drawn = _draw(weights, int(counts.max()))
        return TripletIndices(anchors, positives, drawn[anchors, place])

    def _weights(self, distance: Tensor, in_reach: Tensor, size: int) -> Tensor:
        """1 / q up to a factor for each row, 0 out of reach, in double precision, (B, R)."""
        d = distance.double().clamp(min=self.cutoff, max=2.0)
        beyond = (1 - d.square() / 4).clamp_min(torch.finfo(d.dtype).eps)  # opposite points: not quite 0
        log_weight = (2 - size) * d.log() - (size - 3) / 2 * beyond.log()
        log_weight.masked_fill_(in_reach.logical_not(), -torch.inf)
        largest = log_weight.amax(1, keepdim=True)
        return (log_weight - largest.masked_fill(largest == -torch.inf, 0.0)).exp()


def _draw(weights: Tensor, times: int) -> Tensor:
    """Columns (B, times) drawn with replacement in proportion to non-negative weights (B, R)."""
    up_to = weights.cumsum(1)
    total = up_to[:, -1:]
    share = torch.rand(len(weights), times, dtype=weights.dtype, device=weights.device) * total
    share = torch.minimum(share, torch.nextafter(total, torch.zeros_like(total)))  # never past the last
    return torch.searchsorted(up_to, share, right=True)
