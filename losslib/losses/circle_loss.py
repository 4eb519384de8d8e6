"""Circle loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite, positive
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class CircleLoss(PairLoss):
    """Pulls positives and pushes negatives, each in proportion to how far it is from its optimum.

    A positive stops pulling at similarity 1 + margin and a negative stops pushing at -margin, so inside the
    cosine's range neither side falls quite silent. At the default scale the hardest pair of an anchor takes
    nearly all the gradient, and an anchor whose pairs are clearly apart hardly any.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a loss above 0 (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is no similarity.

    Terms: `loss`, one value per anchor with at least one positive and one negative. The bracketed weights
    are constants of the gradient, as in the paper. A pair given twice counts once.

    Numerics: shifted log-sum-exp on both sides, so any scale is safe.

    Differs from pytorch-metric-learning in the name of the margin, `m` there, and under reducers that count
    zeros: there an anchor that lacks a side is a term of 0.

    Example: one positive and one negative, both at similarity 0.6, margin 0.4, gamma 1: the positive is at
    its threshold, the negative gives (0.6 + 0.4) * (0.6 - 0.4); the loss is log(1 + exp(0.2)) = 0.7981.
    """

    title = "Circle"
    summary = "Pulls positives and pushes negatives, each in proportion to how far it is from its optimum."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Sun, Cheng, Zhang, Zhang, Zheng, Wang, Wei",
        2020,
        "Circle Loss: A Unified Perspective of Pair Similarity Optimization",
        "https://arxiv.org/abs/2002.10857",
    )
    equation = (
        r"\log\Big[1 + \sum_n e^{\gamma [s_{an} + m]_+ (s_{an} - m)}"
        r" \sum_p e^{-\gamma [1 + m - s_{ap}]_+ (s_{ap} - 1 + m)}\Big]"
    )
    pml = PmlSpelling("CircleLoss", {"margin": "m"})
    default_distance = CosineSimilarity
    default_reducer = AvgNonZeroReducer
    needs_similarity = True
    stop_gradient = "the weights of the pairs are constants of the gradient, as in the paper"

    margin = Param(
        0.4,
        valid=finite,
        explore=(0.0, 0.8),
        symbol="m",
        meaning="relaxation: positives should exceed 1 - margin and negatives stay under margin",
        larger="tolerates wider classes and nearer negatives",
    )
    gamma = Param(
        80.0,
        valid=positive,
        explore=(1.0, 256.0),
        symbol=r"\gamma",
        meaning="scale of the similarities",
        larger="the hardest pairs take more of the gradient",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive and a negative."""
        similarity, fixed = pairs.values, pairs.values.detach()
        of_positive = (1 + self.margin - fixed).relu() * (1 - self.margin - similarity)
        of_negative = (fixed + self.margin).relu() * (similarity - self.margin)
        pull = logsumexp_over(self.gamma * of_positive, pairs.positive)
        push = logsumexp_over(self.gamma * of_negative, pairs.negative)
        return {
            "loss": pairs.over_anchors(softplus(pull + push), pairs.positive.any(1) & pairs.negative.any(1))
        }

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        both = (positives > 0) & (negatives > 0)
        exponent = -max(self.margin, 0.0) * self.margin + max(1 + self.margin, 0.0) * (1 - self.margin)
        values = softplus((positives * negatives)[both].log() + self.gamma * exponent)
        return float(values.mean()) if len(values) else 0.0

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        if self.distance.normalize_embeddings:
            return {}
        return {"huge values": "the value grows with the square of the similarity, here without a bound"}

    def marks(self) -> tuple[Mark, ...]:
        """The similarities at which a pair's exponent is 0, as lines."""
        return (
            Mark("line", "positive", 1 - self.margin, "1 - m", "positive threshold"),
            Mark("line", "negative", self.margin, "m", "negative threshold"),
        )
