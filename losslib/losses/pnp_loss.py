"""PNP loss: penalising negatives before positives."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Choice, Param, positive
from losslib.ranks import counts_before
from losslib.reducers import ratio
from losslib.terms import Term, reduced_term
from losslib.types import Paper, PmlSpelling


class PNPLoss(PairLoss):
    """Lowers the number of negatives ranked before each positive, counted by sigmoids.

    The variants weigh that number: O as it is; Iu and Ib grow steeper with it, so badly ranked positives
    come first; Ds and Dq flatten, so nearly right ones come first and hopeless ones are let go. As in
    Smooth-AP, only pairs within a few temperatures of each other give gradient.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a positive of the mean over their positives (0-d), 0 without any.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is no similarity. There is no reducer.

    Terms: `loss`, already reduced. Inside a batch an anchor counts among its positives, as in the authors'
    code; a reference set is ranked alone. A pair given twice counts once.

    Numerics: ranks in blocks of anchors, each computed again for its gradient: memory B x R, never B x R x R.

    Differs from pytorch-metric-learning for a batch without positives, where variant Dq is 0 here; there
    neither tuples nor references are taken, and memory is B x B x B.

    Example: variant O, one negative as similar to the anchor as its only positive: 1/2 of a negative comes
    before the positive and none before the anchor itself; the loss is 1/4.
    """

    title = "PNP"
    summary = "Lowers the number of negatives ranked before each positive, counted by sigmoids."
    family = "ranking"
    activity = "softmax"
    paper = Paper(
        "Li, Min, Wang, Song, Zhou, Zhang",
        2022,
        "Rethinking the Optimization of Average Precision: Only Penalizing Negative Instances before"
        " Positive Ones is Enough",
        "https://arxiv.org/abs/2102.04640",
    )
    equation = (
        r"\frac{1}{|P|} \sum_{i \in P} f\left(\sum_n \sigma\left(\frac{s_{an} - s_{ai}}{\tau}\right)\right),"
        r" \quad f_O = x, \; f_{Ds} = \log(1 + x), \; f_{Dq} = 1 - (1 + x)^{-\alpha},"
        r" \; f_{Iu} = (1 + x) \log(1 + x), \; f_{Ib} = \frac{b x - \log(1 + b x)}{b^2}"
    )
    pml = PmlSpelling("PNPLoss")
    default_distance = CosineSimilarity
    default_reducer = staticmethod(no_reducer)
    needs_similarity = True
    parts = ("distance", "embedding_regularizer", "embedding_reg_weight")
    not_claimed: ClassVar[dict[str, str]] = {
        "pair weights": "an anchor is ranked among its own positives, so its pair with itself has a weight",
        "hard pairs": "a sigmoid is flat far from its step: pairs far out of order wait for the nearer ones",
    }

    b = Param(
        2.0,
        valid=positive,
        explore=(0.5, 5.0),
        symbol="b",
        meaning="bend of variant Ib",
        larger="nearer to counting negatives as they are",
        title="b",
    )
    alpha = Param(
        1.0,
        valid=positive,
        explore=(0.5, 5.0),
        symbol=r"\alpha",
        meaning="exponent of variant Dq",
        larger="a positive is let go after fewer negatives",
    )
    anneal = Param(
        0.01,
        valid=positive,
        explore=(0.001, 0.2),
        symbol=r"\tau",
        meaning="width of the sigmoid that stands for the step of a rank",
        larger="gradient from pairs farther out of order, coarser ranks",
        title="Temperature",
    )
    variant = Param(
        "O",
        valid=Choice("O", "Ds", "Dq", "Iu", "Ib"),
        explore=("O", "Ds", "Dq", "Iu", "Ib"),
        meaning="how the number of negatives before a positive is weighed",
        larger="O: as it is; Ds, Dq: flattening; Iu, Ib: steepening",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss`, already reduced."""
        present = pairs.positive.any(1)
        same = pairs.positive
        if (itself := pairs.batch.itself) is not None:
            same = same | (itself & present.unsqueeze(1))
        _, before, kept = counts_before(pairs.values, same, pairs.negative, self.anneal)
        weighed = (self._weighed(before) * kept.to(before.dtype)).sum(1)
        return {"loss": reduced_term(ratio((weighed / kept.sum(1).clamp_min(1)).sum(), present.sum()))}

    def _weighed(self, before: Tensor) -> Tensor:
        """The variant's function of the number of negatives before a positive."""
        if self.variant == "Ds":
            return before.log1p()
        if self.variant == "Dq":
            return 1 - (1 + before).pow(-self.alpha)
        if self.variant == "Iu":
            return (1 + before) * before.log1p()
        if self.variant == "Ib":
            scaled = self.b * before
            return (scaled - scaled.log1p()) / self.b**2
        return before

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector; labels (B,)."""
        positives, negatives = pair_counts(labels)
        present = positives > 0
        return float((self._weighed(negatives / 2) * present).sum() / present.sum().clamp_min(1))
