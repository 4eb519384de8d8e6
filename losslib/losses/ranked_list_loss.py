"""Ranked list loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distance_rules import require_distance
from losslib.distances import Distance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Interval, Optional, Param, finite, non_negative
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class RankedListLoss(PairLoss):
    """Keeps each class inside a sphere about each of its members and all negatives outside a wider one.

    Pairs that violate their sphere are averaged with more weight the farther they are on the wrong side; the
    others give no gradient, so a class keeps the spread it has inside the sphere. The value of an anchor is
    a mean over its violating pairs and does not fade as they become few.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over all anchors (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a similarity.

    Terms: `loss`, one value per anchor of the batch, 0 where nothing is violated. The weights are part of
    the graph. A pair given twice weighs twice.

    Numerics: the weights are a softmax over the violating pairs, shifted by the largest: no temperature is
    too high.

    Differs from pytorch-metric-learning in names (`Tn`, `Tp` there), in the defaults of margin and
    temperature, which are the paper's (there are none there), and in having no 1e-5 a column in the
    denominators; there neither tuples nor references are taken.

    Example: alpha 1.2, margin 0.4, one positive at distance 1 and one negative at distance 1: the positive
    exceeds 0.8 by 0.2, the negative falls short of 1.2 by 0.2; the loss is 0.5 * 0.2 + 0.5 * 0.2 = 0.2.
    """

    title = "Ranked list"
    summary = (
        "Keeps each class inside a sphere about each of its members and all negatives outside a wider one."
    )
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Wang, Hua, Kodirov, Hu, Garnier, Robertson",
        2019,
        "Ranked List Loss for Deep Metric Learning",
        "https://arxiv.org/abs/1903.03238",
    )
    equation = (
        r"(1 - \lambda) \frac{\sum_p w_p [d_{ap} - (\alpha - m)]_+}{\sum_p w_p}"
        r" + \lambda \frac{\sum_n w_n [\alpha - d_{an}]_+}{\sum_n w_n},"
        r" \quad w_p = e^{T_p (d_{ap} - (\alpha - m))}, \; w_n = e^{T_n (\alpha - d_{an})}"
    )
    pml = PmlSpelling("RankedListLoss", {"neg_temperature": "Tn", "pos_temperature": "Tp"})

    margin = Param(
        0.4,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m",
        meaning="how much nearer positives must be than the boundary of the negatives",
        larger="asks for tighter classes",
    )
    neg_temperature = Param(
        10.0,
        valid=non_negative,
        explore=(0.0, 20.0),
        symbol="T_n",
        meaning="how steeply the weight of a negative grows with its violation",
        larger="the nearest negatives take more of the push",
        title="Negative temperature",
    )
    imbalance = Param(
        0.5,
        valid=Interval(0.0, 1.0),
        explore=(0.0, 1.0),
        symbol=r"\lambda",
        meaning="share of the negatives in the loss",
        larger="pushes negatives more, pulls positives less",
    )
    alpha = Param(
        None,
        valid=Optional(finite),
        explore=(0.8, 1.6),
        symbol=r"\alpha",
        meaning="distance that negatives must keep; none for 1 + margin / 2",
        larger="pushes negatives further",
    )
    pos_temperature = Param(
        0.0,
        valid=non_negative,
        explore=(0.0, 10.0),
        symbol="T_p",
        meaning="how steeply the weight of a positive grows with its violation",
        larger="the farthest positives take more of the pull",
        title="Positive temperature",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError for a similarity."""
        require_distance(self, distance)

    @property
    def boundary(self) -> float:
        """Distance that negatives must keep."""
        return 1 + self.margin / 2 if self.alpha is None else self.alpha

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor."""
        inner = self.boundary - self.margin
        pull = _weighted(pairs.values - inner, pairs.positive_count, self.pos_temperature)
        push = _weighted(self.boundary - pairs.values, pairs.negative_count, self.neg_temperature)
        values = (1 - self.imbalance) * pull + self.imbalance * push
        return {"loss": pairs.over_anchors(values, torch.ones_like(values, dtype=torch.bool))}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        pull = (1 - self.imbalance) * max(self.margin - self.boundary, 0.0)
        push = self.imbalance * max(self.boundary, 0.0)
        return (
            float((pull * (positives > 0) + push * (negatives > 0)).double().mean()) if len(labels) else 0.0
        )

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        reasons = {}
        if self.pos_temperature != 0 or self.neg_temperature != 0:
            reasons["pair weights"] = (
                "the weights are part of the graph: raising a slight violation lowers the weighted mean"
            )
        if self.imbalance in (0, 1):
            reasons["closed hinge"] = "an imbalance of 0 or 1 leaves one side without weight"
        return reasons

    def marks(self) -> tuple[Mark, ...]:
        """Both boundaries, as lines."""
        inner = self.boundary - self.margin
        return (
            Mark("line", "positive", inner, r"\alpha - m", "positive boundary"),
            Mark("line", "negative", self.boundary, r"\alpha", "negative boundary"),
        )


def _weighted(violation: Tensor, count: Tensor, temperature: float) -> Tensor:
    """Mean of each row's violations above 0, weighted by exp(temperature * violation), (B,); 0 without any.

    violation: (B, R). count: (B, R), how often each entry counts.
    """
    if violation.shape[1] == 0:
        return violation.sum(1)
    active = (violation <= 0).logical_not() & (count > 0)  # NaN is no violation kept: it stays NaN
    above = violation.masked_fill(active.logical_not(), 0.0)
    exponent = temperature * (above - above.detach().amax(1, keepdim=True))
    weight = exponent.exp() * (count * active).to(above.dtype)
    total = weight.sum(1)
    return (weight * above).sum(1) / torch.where(total > 0, total, 1.0)
