"""FastAP loss."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distance_rules import require_bounded
from losslib.distances import Distance, LpDistance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Integer, Param
from losslib.terms import Term
from losslib.types import Paper, PmlSpelling


class FastAPLoss(PairLoss):
    """Raises the average precision of each anchor's ranking, taken over soft bins of distance.

    Only the order matters, and only between bins: a positive and a negative in the same two bins are hardly
    told apart, so a late stage of training needs more bins. A pair whose bin holds nothing of the other kind
    at or before it gives next to no gradient.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a positive (0-d), between 0 and 1.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance without a greatest value.

    Terms: `loss`, one value per anchor with at least one positive: 1 - average precision, 0 without
    negatives. The bins divide the distance's range; of a similarity, its shortfall from the greatest. A pair
    given twice counts once.

    Numerics: each value goes to the two bins beside it, so memory is B x R whatever the number of bins. On
    the very centre of a bin the slope is taken as 0.

    Differs from pytorch-metric-learning, which weighs by a miner's pairs where here only those pairs take
    part, and takes no reference set.

    Example: one positive at squared distance 0, one negative at 4: precision 1, the loss is 0. With both at
    the same distance it is 1/2.
    """

    title = "FastAP"
    summary = "Raises the average precision of each anchor's ranking, taken over soft bins of distance."
    family = "ranking"
    activity = "softmax"
    paper = Paper(
        "Cakir, He, Xia, Kulis, Sclaroff",
        2019,
        "Deep Metric Learning to Rank",
        "https://openaccess.thecvf.com/content_CVPR_2019/html/"
        "Cakir_Deep_Metric_Learning_to_Rank_CVPR_2019_paper.html",
    )
    equation = r"1 - \frac{1}{|P(a)|} \sum_{k=0}^{L} \frac{h^+_k H^+_k}{H_k}"
    pml = PmlSpelling("FastAPLoss")
    default_distance = partial(LpDistance, power=2)
    not_claimed: ClassVar[dict[str, str]] = {
        "positive pairs": "between two bins a positive counts for less than a whole one in either",
    }

    num_bins = Param(
        10,
        valid=Integer(1),
        explore=(4, 50),
        symbol="L",
        meaning="number of intervals that the distance's range is divided into",
        larger="nearer to the true ranking, sparser gradient",
        title="Bins",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless the distance has a greatest value."""
        require_bounded(self, distance)

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive."""
        low, high = self.distance.bounds()
        apart = high - pairs.values if self.distance.is_inverted else pairs.values - low
        place = apart * (self.num_bins / (high - low))
        below = place.detach().nan_to_num(0.0).floor().clamp(0, self.num_bins - 1)  # the share stays NaN
        share = (place - below).clamp(0, 1)  # of the value that goes to the bin above
        centre = (share == 0) | (share == 1)
        share = torch.where(centre, share.detach(), share)
        near = self._histogram(below.long(), share, pairs.positive)
        every = near + self._histogram(below.long(), share, pairs.negative)
        seen = every.cumsum(1)
        precision = (near * near.cumsum(1) / torch.where(seen > 0, seen, 1.0)).sum(1)
        count = pairs.positive.sum(1)
        return {"loss": pairs.over_anchors(1 - precision / count.clamp_min(1), count > 0)}

    def _histogram(self, below: Tensor, share: Tensor, mask: Tensor) -> Tensor:
        """How much of each row's masked values lies in each bin, (B, num_bins + 1)."""
        weight = mask.to(share.dtype)
        bins = share.new_zeros(len(share), self.num_bins + 1)
        return bins.scatter_add(1, below, (1 - share) * weight).scatter_add(1, below + 1, share * weight)

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        present = positives > 0
        values = negatives / (positives + negatives).clamp_min(1) * present
        return float(values.sum() / present.sum().clamp_min(1))
