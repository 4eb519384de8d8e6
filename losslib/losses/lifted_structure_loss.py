"""Lifted structure loss."""

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


class LiftedStructureLoss(PairLoss):
    """Asks each positive pair to be nearer than all negatives of both its members, softly the nearest one.

    A pair is satisfied once its distance lies under the soft minimum of those negatives, and then gives no
    gradient; the square makes the worst pairs count the most. The soft minimum grows with the number of
    negatives, so a margin that suits a small batch is a hard one in a large batch.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs (0-d), in both directions of each.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per positive pair, half the squared hinge. With a reference set, the positive is
    a reference and has no negatives of its own: only the anchor's count. A pair without negatives is a term
    of 0 (the logarithm of an empty sum) and counts in the mean. A similarity turns the inequalities.

    Numerics: one shifted log-sum-exp a row, the two of a pair then added in logarithms: B x R memory.

    Differs from pytorch-metric-learning in the order of the margins (negative first there), and for a pair
    without negatives beside others that have some: there it is half its squared distance.

    Example: a pair at distance 0.5, each member with one negative at distance 1, margins 0 and 1:
    the hinge is log(1 + 1) + 0.5, the loss 1.1931^2 / 2 = 0.7118.
    """

    title = "Lifted structure"
    summary = "Asks each positive pair to be nearer than all negatives of both its members."
    family = "pair"
    activity = "softmax"
    paper = Paper(
        "Oh Song, Xiang, Jegelka, Savarese",
        2016,
        "Deep Metric Learning via Lifted Structured Feature Embedding",
        "https://arxiv.org/abs/1511.06452",
    )
    equation = (
        r"\frac{1}{2} \Big[\log\Big(\sum_{n \in N(a)} e^{m_{neg} - d_{an}}"
        r" + \sum_{n \in N(p)} e^{m_{neg} - d_{pn}}\Big) + d_{ap} - m_{pos}\Big]_+^2"
    )
    pml = PmlSpelling("LiftedStructureLoss")

    pos_margin = Param(
        0.0,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m_{pos}",
        meaning="distance that a positive pair is allowed",
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
        """`loss` per positive pair."""
        margin = self.distance.margin
        push = logsumexp_over(margin(self.neg_margin, pairs.values), pairs.negative_count)
        push = push.masked_fill(push == -torch.inf, _NOTHING)
        both = push.unsqueeze(1)
        if pairs.batch.ref_emb is None:
            both = torch.logaddexp(both, push)
        hinge = (both + margin(pairs.values, self.pos_margin)).relu()
        return {"loss": pairs.over_positives(hinge.square() / 2, non_negative=True)}

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor, where it does not."""
        return "" if has_reference else "a pair takes the negatives of both its samples"

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        nearest = 1.0 if self.distance.is_inverted else 0.0
        margin = self.distance.margin
        hinge = (2 * negatives).log() + margin(self.neg_margin, nearest) + margin(nearest, self.pos_margin)
        values = hinge.relu().square() / 2
        return float((positives * values).sum() / positives.sum().clamp_min(1))

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        if self.distance.normalize_embeddings:
            return {}
        return {"huge values": "the value grows with the square of the distance, here without a bound"}

    def marks(self) -> tuple[Mark, ...]:
        """Both margins, as lines."""
        return (
            Mark("line", "positive", self.pos_margin, "m_{pos}", "positive margin"),
            Mark("line", "negative", self.neg_margin, "m_{neg}", "negative margin"),
        )


_NOTHING = -1e30  # in place of the logarithm of 0, whose sums have no gradient
