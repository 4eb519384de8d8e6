"""Threshold-consistent margin loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite
from losslib.reducers import Reducer, ratio
from losslib.terms import Term, reduced_term
from losslib.types import Mark, Paper, PmlSpelling


def no_reducer() -> Reducer | None:
    """The default reducer of a loss that reduces its own value."""
    return None


class ThresholdConsistentMarginLoss(PairLoss):
    """Holds all positives above one similarity and all negatives below another, the same for every class.

    A regulariser: it makes one threshold fit all classes, and is usually added to a metric loss. Only pairs
    on the wrong side of their threshold have a gradient, and each side is averaged over those alone, so a
    single bad pair pulls as hard as a thousand.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the weighted sum of both mean violations (0-d); a side without violation adds 0.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity and for a `reducer`: the loss reduces its own value.

    Terms: `loss`, the value itself, with indices None. Pairs exactly at a threshold count in the mean.

    Numerics: masked sums and counts; pairs are never written out.

    Differs from pytorch-metric-learning 2.9, which ignores the reference set.

    Example: one positive at similarity 0.8 and one negative at 0.4, defaults: 0.9 - 0.8 = 0.1.
    """

    title = "Threshold-consistent margin"
    summary = "Holds all positives above one similarity and all negatives below another, for every class."
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Zhang, Xu, Tang, Fang, Wu, Tighe, Xing",
        2024,
        "Threshold-Consistent Margin Loss for Open-World Deep Metric Learning",
        "https://arxiv.org/abs/2307.04047",
    )
    equation = (
        r"\lambda^+ \frac{\sum_{s \in S^+} (m^+ - s) \, 1_{s \le m^+}}{\sum_{s \in S^+} 1_{s \le m^+}}"
        r" + \lambda^- \frac{\sum_{s \in S^-} (s - m^-) \, 1_{s \ge m^-}}{\sum_{s \in S^-} 1_{s \ge m^-}}"
    )
    pml = PmlSpelling("ThresholdConsistentMarginLoss")
    default_distance = CosineSimilarity
    default_reducer = staticmethod(no_reducer)
    needs_similarity = True
    parts = ("distance", "embedding_regularizer", "embedding_reg_weight")

    lambda_plus = Param(
        1.0,
        valid=finite,
        explore=(0.0, 5.0),
        symbol=r"\lambda^+",
        meaning="weight of the positives' violation",
        larger="pulls positives harder",
    )
    lambda_minus = Param(
        1.0,
        valid=finite,
        explore=(0.0, 5.0),
        symbol=r"\lambda^-",
        meaning="weight of the negatives' violation",
        larger="pushes negatives harder",
    )
    margin_plus = Param(
        0.9,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m^+",
        meaning="similarity at or below which a positive pair contributes",
        larger="asks for tighter classes",
    )
    margin_minus = Param(
        0.5,
        valid=finite,
        explore=(-0.5, 1.0),
        symbol="m^-",
        meaning="similarity at or above which a negative pair contributes",
        larger="tolerates nearer negatives",
    )

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        reasons = {}
        if self.lambda_minus == 0:
            reasons["closed hinge"] = "its negatives have a weight of 0"
        if self.lambda_plus == 0:
            names = ("closed hinge", "pair weights", "hard pairs")
            reasons |= dict.fromkeys(names, "its positives have a weight of 0")
        return reasons

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss`, already reduced."""
        low, high = self._sides(pairs, pairs.values)
        value = self.lambda_plus * ratio(low.sum(), low.count())
        return {"loss": reduced_term(value + self.lambda_minus * ratio(high.sum(), high.count()))}

    def _sides(self, pairs: Pairs, similarity: Tensor) -> tuple[Term, Term]:
        """The violations of the positives and of the negatives."""
        # NaN keeps no threshold: it stays among the violating pairs
        near, far = similarity > self.margin_plus, similarity < self.margin_minus
        low = pairs.over_positives(self.margin_plus - similarity, near.logical_not())
        return low, pairs.over_negatives(similarity - self.margin_minus, far.logical_not())

    def terms_by_anchor(self, pairs: Pairs) -> dict[str, tuple[Term, float]]:
        """Terms and weights: the loss is the weighted sum of the means of the terms. For work in chunks."""
        low, high = self._sides(pairs, pairs.values)
        return {"positives": (low, self.lambda_plus), "negatives": (high, self.lambda_minus)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        low = self.lambda_plus * max(self.margin_plus - 1, 0.0) if positives.any() else 0.0
        high = self.lambda_minus * max(1 - self.margin_minus, 0.0) if negatives.any() else 0.0
        return low + high

    def marks(self) -> tuple[Mark, ...]:
        """Both thresholds, as lines."""
        return (
            Mark("line", "positive", self.margin_plus, "m^+", "positive threshold"),
            Mark("line", "negative", self.margin_minus, "m^-", "negative threshold"),
        )
