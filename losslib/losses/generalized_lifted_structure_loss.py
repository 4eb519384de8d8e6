"""Generalized lifted structure loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite
from losslib.softmax import logsumexp_over
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class GeneralizedLiftedStructureLoss(PairLoss):
    """Asks all positives of an anchor together to be nearer than all its negatives together.

    Both sides are soft: the farthest positive and the nearest negative take most of the gradient, the others
    some. The hinge closes for an anchor whose soft extremes are apart by the margin. Both soft extremes grow
    with the number of pairs, and with them the margin that is reachable.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors that have a pair (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per anchor with at least one pair; a missing side adds nothing, so an anchor
    with negatives alone still pushes them. A similarity turns the inequalities. A pair given twice counts
    once.

    Numerics: shifted log-sum-exp on both sides.

    Differs from pytorch-metric-learning in the order of the margins (negative first there), and where an
    anchor has no pair: there it counts as 0 in the mean.

    Example: one positive at distance 0.5 and one negative at distance 1, margins 0 and 1: 0.5 + 0 = 0.5.
    """

    title = "Generalized lifted structure"
    summary = "Asks all positives of an anchor together to be nearer than all its negatives together."
    family = "pair"
    activity = "softmax"
    paper = Paper(
        "Hermans, Beyer, Leibe",
        2017,
        "In Defense of the Triplet Loss for Person Re-Identification",
        "https://arxiv.org/abs/1703.07737",
    )
    equation = r"\left[\log \sum_p e^{d_{ap} - m_{pos}} + \log \sum_n e^{m_{neg} - d_{an}}\right]_+"
    pml = PmlSpelling("GeneralizedLiftedStructureLoss")

    pos_margin = Param(
        0.0,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m_{pos}",
        meaning="distance that positives are allowed",
        larger="tolerates wider classes",
        title="Positive margin",
    )
    neg_margin = Param(
        1.0,
        valid=finite,
        explore=(0.0, 2.0),
        symbol="m_{neg}",
        meaning="distance that negatives are asked to keep",
        larger="pushes negatives further",
        title="Negative margin",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a pair."""
        margin = self.distance.margin
        pull = logsumexp_over(margin(pairs.values, self.pos_margin), pairs.positive)
        push = logsumexp_over(margin(self.neg_margin, pairs.values), pairs.negative)
        near, far = pairs.positive.any(1), pairs.negative.any(1)
        values = torch.where(near, pull, 0.0) + torch.where(far, push, 0.0)
        return {"loss": pairs.over_anchors(values.relu(), near | far)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        nearest = 1.0 if self.distance.is_inverted else 0.0
        pull = positives.log() + self.distance.margin(nearest, self.pos_margin)
        push = negatives.log() + self.distance.margin(self.neg_margin, nearest)
        values = (pull.masked_fill(positives == 0, 0.0) + push.masked_fill(negatives == 0, 0.0)).relu()
        return float(values.sum() / (positives + negatives > 0).sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """Both margins, as lines."""
        return (
            Mark("line", "positive", self.pos_margin, "m_{pos}", "positive margin"),
            Mark("line", "negative", self.neg_margin, "m_{neg}", "negative margin"),
        )
