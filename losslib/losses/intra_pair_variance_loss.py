"""Intra-pair variance loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.params import Param, non_negative
from losslib.reducers import ratio
from losslib.terms import Term
from losslib.types import Paper, PmlSpelling


class IntraPairVarianceLoss(PairLoss):
    """Draws hard pairs towards the mean of their kind, so that the similarities of each kind vary little.

    Positives less similar than the batch's mean positive, and negatives more similar than its mean negative,
    are brought back to it; easy pairs are left alone. It says nothing on how far apart the two means should
    be: it is meant as an addition to another loss, and alone it separates no classes.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs plus that over the negative pairs (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `pos_loss` and `neg_loss`, one value a pair. The means are part of the graph. A distance turns the
    inequalities and the signs of the tolerances.

    Numerics: the tolerance is a share of the mean, so a mean below 0 moves it to the other side.

    Differs from the paper in nothing that is known; it is equal to pytorch-metric-learning.

    Example: positives at similarity 0.8 and 0.6, tolerance 0.01: the mean is 0.7, the second falls short of
    0.99 * 0.7 by 0.093; the positives' part is 0.093^2 / 2 = 0.004325.
    """

    title = "Intra-pair variance"
    summary = "Draws hard pairs towards the mean of their kind, so that similarities of a kind vary little."
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Yu, Tao",
        2019,
        "Deep Metric Learning with Tuplet Margin Loss",
        "https://openaccess.thecvf.com/content_ICCV_2019/html/"
        "Yu_Deep_Metric_Learning_With_Tuplet_Margin_Loss_ICCV_2019_paper.html",
    )
    equation = (
        r"\mathrm{E}_p\left[(1 - \epsilon_{pos}) \mathrm{E}[s_p] - s_p\right]_+^2"
        r" + \mathrm{E}_n\left[s_n - (1 + \epsilon_{neg}) \mathrm{E}[s_n]\right]_+^2"
    )
    pml = PmlSpelling("IntraPairVarianceLoss")
    default_distance = CosineSimilarity
    pos_eps = Param(
        0.01,
        valid=non_negative,
        explore=(0.0, 0.2),
        symbol=r"\epsilon_{pos}",
        meaning="tolerance of the positives, as a share of their mean",
        larger="fewer positives contribute",
    )
    neg_eps = Param(
        0.01,
        valid=non_negative,
        explore=(0.0, 0.2),
        symbol=r"\epsilon_{neg}",
        meaning="tolerance of the negatives, as a share of their mean",
        larger="fewer negatives contribute",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`pos_loss` per positive pair and `neg_loss` per negative pair."""
        margin, values = self.distance.margin, pairs.values
        sign = -1.0 if self.distance.is_inverted else 1.0
        positives, negatives = pairs.over_positives(values), pairs.over_negatives(values)
        near = (1 + sign * self.pos_eps) * ratio(positives.sum(), positives.count())
        far = (1 - sign * self.neg_eps) * ratio(negatives.sum(), negatives.count())
        of_positives, of_negatives = margin(values, near).relu(), margin(far, values).relu()
        return {
            "pos_loss": pairs.over_positives(of_positives.square(), non_negative=True),
            "neg_loss": pairs.over_negatives(of_negatives.square(), non_negative=True),
        }

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "every pair is held against the mean of all pairs"

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector: equal pairs do not vary, 0."""
        return 0.0

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        reasons = {
            "pair weights": "every pair moves the mean that the others are held against",
            "negative pairs": "negatives are asked to be alike, not far",
        }
        if not self.distance.normalize_embeddings:
            reasons["huge values"] = "the value grows with the square of the distance, here without a bound"
        return reasons
