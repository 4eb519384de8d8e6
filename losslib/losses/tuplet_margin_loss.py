"""Tuplet margin loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distance_rules import require_cosine
from losslib.distances import CosineSimilarity, Distance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Interval, Param, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class TupletMarginLoss(PairLoss):
    """Asks each positive, its angle slackened by a margin, to be nearer than all of the anchor's negatives.

    The slack is subtracted from the positive's angle before it is compared, so a positive within the margin
    is pushed away rather than pulled: hard triplets inside it no longer drag a class to a point. The scale is
    steep: an anchor whose nearest negative is clearly farther gives next to no gradient.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is no cosine.

    Terms: `loss`, one value per positive pair: that positive against the anchor's negatives. A pair whose
    anchor has no negatives is a term of 0 and counts in the mean.

    Numerics: cos(theta - margin) is expanded, so no arc cosine is taken; a positive at angle 0, up to
    rounding, passes no gradient through its sine. Shifted log-sum-exp.

    Differs from pytorch-metric-learning in memory (positives times negatives there) and at coincident
    positives, whose gradient is NaN there.

    Example: one positive at angle 60, one negative at 90 degrees, margin 30 degrees, scale 1:
    log(1 + exp(0 - cos 30)) = 0.3511.
    """

    title = "Tuplet margin"
    summary = "Asks each positive, its angle slackened by a margin, to be nearer than all negatives together."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Yu, Tao",
        2019,
        "Deep Metric Learning with Tuplet Margin Loss",
        "https://openaccess.thecvf.com/content_ICCV_2019/html/"
        "Yu_Deep_Metric_Learning_With_Tuplet_Margin_Loss_ICCV_2019_paper.html",
    )
    equation = r"\log\left[1 + \sum_n e^{\sigma (\cos \theta_{an} - \cos(\theta_{ap} - \beta))}\right]"
    pml = PmlSpelling("TupletMarginLoss")
    default_distance = CosineSimilarity

    margin = Param(
        5.73,
        valid=Interval(-180.0, 180.0),
        explore=(0.0, 30.0),
        symbol=r"\beta",
        meaning="slack subtracted from the angle of a positive",
        larger="positives within a wider angle are let go",
        unit="degrees",
    )
    scale = Param(
        64.0,
        valid=positive,
        explore=(1.0, 128.0),
        symbol=r"\sigma",
        meaning="scale of the similarities",
        larger="the nearest negatives take more of the push",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless values are cosines."""
        require_cosine(self, distance)

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per positive pair."""
        cosine = pairs.values
        slack = math.radians(self.margin)
        slackened = cosine * math.cos(slack) + _sine(cosine) * math.sin(slack)
        negatives = logsumexp_over(self.scale * cosine, pairs.negative_count).unsqueeze(1)
        return {"loss": pairs.over_positives(softplus(negatives - self.scale * slackened))}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        violation = self.scale * (1 - math.cos(math.radians(self.margin)))
        values = softplus(negatives.log() + violation)
        return float((positives * values).sum() / positives.sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The scale, as the temperature that it is the inverse of."""
        return (Mark("temperature", "negative", 1 / self.scale, r"1 / \sigma", "1 / scale"),)


def _sine(cosine: Tensor) -> Tensor:
    """sqrt(1 - cosine squared), 0 without a gradient where that is rounding alone."""
    squared = 1 - cosine.square()
    flat = squared <= 8 * torch.finfo(cosine.dtype).eps
    return squared.masked_fill(flat, 1.0).sqrt().masked_fill(flat, 0.0)
