"""Multi-similarity loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class MultiSimilarityLoss(PairLoss):
    """Pulls positives above a base similarity and pushes negatives below it, the hardest of each the most.

    The negatives' scale is steep: below the base they give next to no gradient, above it the nearest takes
    all. The positives' scale is gentle, so they keep pulling. With the base far from where the similarities
    lie, one side falls silent.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors that have a pair (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per anchor with at least one pair; a missing side adds nothing. With a
    distance, the inequalities turn. A pair given twice counts once.

    Numerics: shifted log-sum-exp, so any scale is safe.

    Differs from pytorch-metric-learning where an anchor has no pair: there it counts as 0 in the mean.

    Example: one positive at similarity 0.5 and no negative, alpha 2, base 0.5: log(2) / 2 = 0.3466.
    """

    title = "Multi-similarity"
    summary = "Pulls positives above a base similarity and pushes negatives below it, the hardest the most."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Wang, Han, Huang, Dong, Scott",
        2019,
        "Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning",
        "https://arxiv.org/abs/1904.06627",
    )
    equation = (
        r"\frac{1}{\alpha} \log\left[1 + \sum_p e^{-\alpha (s_{ap} - \lambda)}\right]"
        r" + \frac{1}{\beta} \log\left[1 + \sum_n e^{\beta (s_{an} - \lambda)}\right]"
    )
    pml = PmlSpelling("MultiSimilarityLoss")
    default_distance = CosineSimilarity

    alpha = Param(
        2.0,
        valid=positive,
        explore=(0.5, 20.0),
        symbol=r"\alpha",
        meaning="scale of the positives",
        larger="the farthest positive takes more of the pull",
    )
    beta = Param(
        50.0,
        valid=positive,
        explore=(1.0, 100.0),
        symbol=r"\beta",
        meaning="scale of the negatives",
        larger="the nearest negative takes more of the push",
    )
    base = Param(
        0.5,
        valid=finite,
        explore=(-0.5, 1.0),
        symbol=r"\lambda",
        meaning="similarity that positives should exceed and negatives stay under",
        larger="pulls positives nearer, tolerates nearer negatives",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a pair."""
        margin = self.distance.margin
        pull = logsumexp_over(self.alpha * margin(pairs.values, self.base), pairs.positive)
        push = logsumexp_over(self.beta * margin(self.base, pairs.values), pairs.negative)
        values = softplus(pull) / self.alpha + softplus(push) / self.beta
        return {"loss": pairs.over_anchors(values, (pairs.positive | pairs.negative).any(1))}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        nearest = 1.0 if self.distance.is_inverted else 0.0
        pull = self.alpha * self.distance.margin(nearest, self.base)
        push = self.beta * self.distance.margin(self.base, nearest)
        values = softplus(positives.log() + pull) / self.alpha + softplus(negatives.log() + push) / self.beta
        return float(values.sum() / (positives + negatives > 0).sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The base, as a line for both sides."""
        return (Mark("line", "both", self.base, r"\lambda", "base"),)
