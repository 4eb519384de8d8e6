"""Contrastive loss."""

from __future__ import annotations

import warnings

from torch import Tensor

from losslib.base import PairLoss
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, boolean, finite
from losslib.reducers import AvgNonZeroReducer
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class ContrastiveLoss(PairLoss):
    """Pulls each positive pair inside one margin and pushes each negative pair beyond another.

    A positive pair inside `pos_margin` and a negative pair beyond `neg_margin` give no gradient, so a
    well-separated batch trains on a few pairs, and with a `neg_margin` too small on none. Every pair is
    judged by itself: one threshold must suit all classes. When all embeddings coincide the negatives'
    gradient is 0 and the loss stays at its collapse.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean of the positive pairs' hinges above 0 plus that of the negative pairs' (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `pos_loss` and `neg_loss`, one value a pair. A similarity turns the inequalities; give it
    margins such as `pos_margin=1, neg_margin=0` (a similarity with the defaults warns).

    Numerics: distances are exact near 0, and a pair at distance 0 passes no gradient.

    Differs from the paper: the hinges are not squared unless `squared=True`, which gives half their
    squares. pytorch-metric-learning has no squared form.

    Example: two points of one class at distance 0.5, margins 0 and 1: the loss is 0.5.
    """

    title = "Contrastive"
    summary = "Pulls each positive pair inside one margin and pushes each negative pair beyond another."
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Hadsell, Chopra, LeCun",
        2006,
        "Dimensionality Reduction by Learning an Invariant Mapping",
        "http://yann.lecun.com/exdb/publis/pdf/hadsell-chopra-lecun-06.pdf",
    )
    equation = r"\left[d_p - m_{pos}\right]_+ + \left[m_{neg} - d_n\right]_+"
    pml = PmlSpelling("ContrastiveLoss", {"squared": ""})
    default_reducer = AvgNonZeroReducer

    pos_margin = Param(
        0.0,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m_{pos}",
        meaning="distance over which a positive pair contributes",
        larger="tolerates wider classes",
        title="Positive margin",
    )
    neg_margin = Param(
        1.0,
        valid=finite,
        explore=(0.0, 2.0),
        symbol="m_{neg}",
        meaning="distance under which a negative pair contributes",
        larger="pushes negatives further",
        title="Negative margin",
    )
    squared = Param(
        False,
        valid=boolean,
        explore=(False, True),
        meaning="half the squared hinges of the 2006 paper instead of the hinges",
        larger="far violations count more, near ones hardly",
        title="Squared hinges",
    )

    def prepare(self) -> None:
        """Warn where a similarity meets the margins of a distance."""
        if self.distance.is_inverted and (self.pos_margin, self.neg_margin) == (0.0, 1.0):
            warnings.warn(
                "ContrastiveLoss: margins 0 and 1 suit a distance; with a similarity use values such as "
                "pos_margin=1, neg_margin=0",
                stacklevel=5,
            )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`pos_loss` per positive pair and `neg_loss` per negative pair."""
        margin = self.distance.margin
        near = margin(pairs.values, self.pos_margin).relu()
        far = margin(self.neg_margin, pairs.values).relu()
        if self.squared:
            near, far = near.square() / 2, far.square() / 2
        return {
            "pos_loss": pairs.over_positives(near, non_negative=True),
            "neg_loss": pairs.over_negatives(far, non_negative=True),
        }

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        nearest = 1.0 if self.distance.is_inverted else 0.0
        near = max(self.distance.margin(nearest, self.pos_margin), 0.0) if positives.any() else 0.0
        far = max(self.distance.margin(self.neg_margin, nearest), 0.0) if negatives.any() else 0.0
        return (near**2 + far**2) / 2 if self.squared else near + far

    def marks(self) -> tuple[Mark, ...]:
        """Both margins, as lines."""
        return (
            Mark("line", "positive", self.pos_margin, "m_{pos}", "positive margin"),
            Mark("line", "negative", self.neg_margin, "m_{neg}", "negative margin"),
        )
