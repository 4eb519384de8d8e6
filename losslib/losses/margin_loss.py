"""Margin loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.all_triplets import SumTripletsTerm
from losslib.base import PairLoss
from losslib.errors import ShapeError
from losslib.inputs import Batch
from losslib.learned import TensorParam, at_precision, hold
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Integer, Optional, Param, boolean, finite
from losslib.precision import values_are_known
from losslib.reducers import DivisorReducer
from losslib.terms import DenseTerm, IndexedTerm, Term, reduced_term
from losslib.triplets import PER_ANCHOR
from losslib.types import Mark, Paper, PmlSpelling, TripletIndices


class MarginLoss(PairLoss):
    """Holds positives inside a boundary and negatives outside it, each by a margin.

    A pair beyond its margin gives no gradient, and the value is a mean over the pair terms that do, so it
    does not fade as pairs are satisfied. A pair counts once for each triplet that contains it: rare classes
    weigh more. A learned boundary drifts to 0 with the embeddings unless `nu` or their norms hold it.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,). With `num_classes`, labels are
    required and anchors' labels must lie in 0..num_classes-1; the references' may be any.

    Returns the sum over triplets divided by the number of non-zero pair terms (0-d), 0 without any.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    where a learned `beta` does not match the embeddings' device and dtype outside autocast.

    Terms: `loss`, one value per triplet, with divisor; `beta_reg_loss` when `learn_beta`: already reduced
    without classes (0 without any triplet), else one value per triplet with the same divisor. Terms with a
    divisor need DivisorReducer. `beta` is the parameter (learned) or buffer itself, of shape (1,) or
    (num_classes,).

    Numerics: the sum over all triplets is a weighted sum over pairs, in B x R memory.

    Differs from the paper: beta is fixed by default and has no value per image. pytorch-metric-learning 2.9
    calls the term `margin_loss` and takes `num_classes=1` for a scalar.

    Example: distances 1.1 to the positive and 1.1 to the negative, defaults: (0.1 + 0.3) / 2 = 0.2.
    """

    title = "Margin"
    summary = "Holds positives inside a boundary and negatives outside it, each by a margin."
    family = "triplet"
    activity = "hinge"
    paper = Paper(
        "Wu, Manmatha, Smola, Krähenbühl",
        2017,
        "Sampling Matters in Deep Embedding Learning",
        "https://arxiv.org/abs/1706.07567",
    )
    equation = r"\left[\alpha + d_{ap} - \beta\right]_+ + \left[\alpha + \beta - d_{an}\right]_+ + \nu \beta"
    pml = PmlSpelling("MarginLoss")
    default_reducer = DivisorReducer

    margin = Param(
        0.2,
        valid=finite,
        explore=(0.0, 1.0),
        symbol=r"\alpha",
        meaning="how far from the boundary a pair must be",
        larger="keeps more pairs active",
    )
    nu = Param(
        0,
        valid=finite,
        explore=(0.0, 1.0),
        symbol=r"\nu",
        meaning="weight of the penalty on a learned boundary",
        larger="draws the boundary in",
    )
    beta = TensorParam(
        1.2,
        valid=finite,
        explore=(0.2, 2.0),
        symbol=r"\beta",
        meaning="distance of the boundary, its first value when learned",
        larger="wider classes, farther negatives",
    )
    triplets_per_anchor = PER_ANCHOR
    learn_beta = Param(
        False,
        valid=boolean,
        explore=(False, True),
        meaning="whether the boundary is a parameter to be trained",
        larger="the boundary follows the data",
        fixed=True,
    )
    num_classes = Param(
        None,
        valid=Optional(Integer(1)),
        meaning="number of classes with a boundary each; none for one boundary",
        larger="one boundary a class",
        fixed=True,
    )

    def prepare(self) -> None:
        """Make beta, one number or one a class."""
        hold(self, "beta", self.num_classes or 1, self.learn_beta)

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per triplet with divisor, and `beta_reg_loss` where beta is learned."""
        beta = self._beta_of_anchors(pairs.batch)
        margin = self.distance.margin
        near = (margin(pairs.values, beta) + self.margin).relu()
        far = (margin(beta, pairs.values) + self.margin).relu()
        triplets = pairs.triplets(self.triplets_per_anchor)
        term = _over_all(pairs, near, far) if triplets is None else _over(triplets, near, far)
        found: dict[str, Term] = {"loss": term}
        if self.learn_beta:
            found["beta_reg_loss"] = self._penalty(pairs, beta, triplets, term)
        return found

    def _beta_of_anchors(self, batch: Batch) -> Tensor:
        """The boundary of each anchor, (B, 1) or (1,)."""
        beta = at_precision(self, "beta", batch)
        if self.num_classes is None:
            return beta
        labels = batch.labels
        if labels is None:
            raise ShapeError("MarginLoss: num_classes needs labels to choose each anchor's beta, got None")
        if labels.is_floating_point():
            raise TypeError(f"MarginLoss: labels must be whole numbers with num_classes, got {labels.dtype}")
        labels = labels.long()
        if values_are_known(labels) and not bool(((labels >= 0) & (labels < len(beta))).all()):
            raise ShapeError(
                f"MarginLoss: anchors' labels must lie in 0..{len(beta) - 1} (num_classes={len(beta)})"
            )
        return beta[labels].unsqueeze(1)

    def _penalty(self, pairs: Pairs, beta: Tensor, triplets: TripletIndices | None, term: Term) -> Term:
        if self.num_classes is None:
            count = term.count()  # without any triplet there is nothing to do, and no penalty
            return reduced_term(self.nu * beta.sum() * (count > 0))
        of_anchor = self.nu * beta.squeeze(1)
        if triplets is None:
            times = pairs.positive.sum(1) * pairs.negative.sum(1)
            return DenseTerm(of_anchor, times, term.divisor)
        return IndexedTerm(of_anchor[triplets.anchors], triplets.anchors, term.divisor)

    def value_at_collapse(self, labels: Tensor) -> float | None:
        """The loss when all embeddings are one unit vector; None where every class has its own beta."""
        positives, negatives = pair_counts(labels)
        if self.num_classes is not None:
            return None
        if not (positives * negatives).any():
            return 0.0
        nearest, beta = (1.0 if self.distance.is_inverted else 0.0), float(self.beta.detach())
        near = max(self.distance.margin(nearest, beta) + self.margin, 0.0)
        far = max(self.distance.margin(beta, nearest) + self.margin, 0.0)
        active = (near > 0) + (far > 0)
        return (near + far) / max(active, 1) + (self.nu * beta if self.learn_beta else 0.0)

    def marks(self) -> tuple[Mark, ...]:
        """The boundary and the distances beyond which pairs are satisfied, as lines (classes averaged)."""
        beta = float(self.beta.detach().mean())
        toward = -self.margin if not self.distance.is_inverted else self.margin
        return (
            Mark("line", "both", beta, r"\beta", "boundary"),
            Mark("line", "positive", beta + toward, r"\beta - \alpha", "positives satisfied"),
            Mark("line", "negative", beta - toward, r"\beta + \alpha", "negatives satisfied"),
        )


def _over_all(pairs: Pairs, near: Tensor, far: Tensor) -> Term:
    positive, negative = pairs.positive, pairs.negative
    near_active = (positive & (near > 0)).sum(1) * negative.sum(1)
    far_active = (negative & (far > 0)).sum(1) * positive.sum(1)
    return SumTripletsTerm(near, far, positive, negative, (near_active + far_active).sum())


def _over(triplets: TripletIndices, near: Tensor, far: Tensor) -> Term:
    anchors, positives, negatives = triplets
    of_positives, of_negatives = near[anchors, positives], far[anchors, negatives]
    divisor = torch.count_nonzero(of_positives) + torch.count_nonzero(of_negatives)
    return IndexedTerm(of_positives + of_negatives, triplets, divisor)
