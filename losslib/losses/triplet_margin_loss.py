"""Triplet margin loss."""

from __future__ import annotations

import math

from torch import Tensor

from losslib.all_triplets import HingeTripletsTerm
from losslib.base import PairLoss
from losslib.block_triplets import BlockTripletsTerm
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, boolean, finite
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import softplus
from losslib.terms import IndexedTerm, Term
from losslib.triplets import PER_ANCHOR
from losslib.types import Mark, Paper, PmlSpelling


class TripletMarginLoss(PairLoss):
    """Asks each positive to be nearer to its anchor than each negative, by a margin.

    Only differences count: classes need not share a scale, and nothing is asked of a triplet that keeps the
    margin. As training goes on most triplets do, so a mean over all of them fades while a mean over the
    violating ones does not. With all embeddings at one point every triplet violates and none has a gradient.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the triplets that violate the margin (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per triplet. `swap` takes the smaller of the negative's distances to anchor and
    positive; `smooth_loss` takes log(1 + exp(x)) for max(0, x). `triplets_per_anchor` draws that many of
    each anchor's triplets with replacement, by torch's generator; triplets given by index are taken as they
    are. With a reference set the swap compares references.

    Numerics: all triplets are summed from sorted rows, in B x R memory; swapped or smooth ones in blocks.

    Differs from pytorch-metric-learning 2.9: its margin is 0.05 and its swap ignores the reference set.

    Example: distances 0.5 to the positive and 0.6 to the negative, margin 0.2: the loss is 0.1.
    """

    title = "Triplet margin"
    summary = "Asks each positive to be nearer to its anchor than each negative, by a margin."
    family = "triplet"
    activity = "hinge"
    paper = Paper(
        "Schroff, Kalenichenko, Philbin",
        2015,
        "FaceNet: A Unified Embedding for Face Recognition and Clustering",
        "https://arxiv.org/abs/1503.03832",
    )
    equation = r"\left[d_{ap} - d_{an} + m\right]_+"
    pml = PmlSpelling("TripletMarginLoss")
    default_reducer = AvgNonZeroReducer

    margin = Param(
        0.2,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m",
        meaning="by how much a negative must be farther than a positive",
        larger="keeps more triplets active",
    )
    swap = Param(
        False,
        valid=boolean,
        explore=(False, True),
        meaning="whether the negative's distance to the positive counts when it is the smaller",
        larger="harder triplets",
    )
    smooth_loss = Param(
        False,
        valid=boolean,
        explore=(False, True),
        meaning="log(1 + exp(x)) instead of the hinge",
        larger="every triplet keeps some gradient",
    )
    triplets_per_anchor = PER_ANCHOR

    @property
    def activity_rule(self) -> str:
        """softmax with `smooth_loss`, which leaves every triplet some weight."""
        return "softmax" if self.smooth_loss else self.activity

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per triplet."""
        separation = pairs.separation
        triplets = pairs.triplets(self.triplets_per_anchor)
        between = self._between_references(pairs) if self.swap else None
        if triplets is None and (self.swap or self.smooth_loss):
            return {
                "loss": BlockTripletsTerm(
                    separation, pairs.positive, pairs.negative, self.margin, between, self.smooth_loss
                )
            }
        if triplets is None:
            return {"loss": HingeTripletsTerm(separation, pairs.positive, pairs.negative, self.margin)}
        anchors, positives, negatives = triplets
        far = separation[anchors, negatives]
        if between is not None:
            far = far.minimum(between[positives, negatives])
        violation = separation[anchors, positives] - far + self.margin
        return {"loss": IndexedTerm(softplus(violation) if self.smooth_loss else violation.relu(), triplets)}

    def _between_references(self, pairs: Pairs) -> Tensor:
        between = pairs.between_references()
        return -between if self.distance.is_inverted else between

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        if not (positives * negatives).any():
            return 0.0
        return math.log1p(math.exp(self.margin)) if self.smooth_loss else max(self.margin, 0.0)

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        return {"closed hinge": "a smooth hinge never closes"} if self.smooth_loss else {}

    def marks(self) -> tuple[Mark, ...]:
        """The margin, as the gap required between positive and negative distances."""
        return (Mark("gap", "both", self.margin, "m", "margin"),)
