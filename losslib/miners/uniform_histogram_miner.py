"""Pairs drawn evenly over the range of distances."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.miners.base import CAP, Candidates, Miner
from losslib.params import Integer, Param
from losslib.types import PairIndices


class UniformHistogramMiner(Miner):
    """Pairs drawn so that their distances are spread evenly, positive and negative ones apart.

    The range from the least to the greatest distance is cut into bins of equal width, and each bin that holds
    a pair gives the same number of pairs, drawn with replacement by torch's generator.

    Returns PairIndices. Memory: the distance matrix and the pairs.
    """

    summary = "Pairs drawn evenly over the range of their distances."

    num_bins = Param(
        100, valid=Integer(1), explore=(5, 200), meaning="number of bins", larger="more pairs, finer spread"
    )
    pos_per_bin = Param(
        10,
        valid=Integer(1),
        explore=(1, 50),
        meaning="positive pairs drawn from each bin",
        larger="more positive pairs",
        title="Positive pairs a bin",
    )
    neg_per_bin = Param(
        10,
        valid=Integer(1),
        explore=(1, 50),
        meaning="negative pairs drawn from each bin",
        larger="more negative pairs",
        title="Negative pairs a bin",
    )
    tuples_per_anchor = CAP

    def mine(self, candidates: Candidates) -> PairIndices:
        """Pairs of both sides, bin by bin."""
        near = self._drawn(candidates.values, *candidates.positives(), self.pos_per_bin)
        return PairIndices(*near, *self._drawn(candidates.values, *candidates.negatives(), self.neg_per_bin))

    def _drawn(self, values: Tensor, anchors: Tensor, others: Tensor, per_bin: int) -> tuple[Tensor, Tensor]:
        if len(anchors) == 0:
            return anchors, others
        chosen = values[anchors, others].double()
        low, high = torch.aminmax(chosen)
        step = torch.arange(self.num_bins + 1, device=chosen.device) / self.num_bins
        edges = low + step * (high - low)
        number = (torch.bucketize(chosen, edges, right=True) - 1).clamp(0, self.num_bins - 1)
        order = number.argsort()
        counts = torch.bincount(number, minlength=self.num_bins)
        first = counts.cumsum(0) - counts
        filled = counts > 0
        share = torch.rand(int(filled.sum()), per_bin, dtype=torch.float64, device=chosen.device)
        place = first[filled].unsqueeze(1) + (share * counts[filled].unsqueeze(1)).long()
        kept = order[place.flatten()]
        return anchors[kept], others[kept]
