"""Smooth-AP loss."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, positive
from losslib.ranks import counts_before
from losslib.terms import Term
from losslib.types import Paper, PmlSpelling


class SmoothAPLoss(PairLoss):
    """Raises the average precision of each anchor's ranking, its ranks counted by sigmoids.

    A pair of rows gives gradient while its similarities to the anchor are within a few temperatures of each
    other: a positive ranked far behind a negative gets none. A low temperature is close to the true ranking
    and nearly flat, a high one learns from far but ranks coarsely.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a positive (0-d), between 0 and 1.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is no similarity.

    Terms: `loss`, one value per anchor with at least one positive: 1 - average precision, 0 without
    negatives. Inside a batch an anchor ranks itself among its positives, as in the authors' code; a
    reference set is ranked alone. Classes may have any size and order. A pair given twice counts once.

    Numerics: ranks in blocks of anchors, each computed again for its gradient: memory B x R, never B x R x R.

    Differs from pytorch-metric-learning, which needs sorted classes of one size without checking the order,
    calls the term `ap_loss` and takes no reference set.

    Example: one negative as similar to the anchor as the only positive, far from saturation: the positive's
    rank is 2.5 of which 2 are positives, the anchor itself is at rank 1: precision 0.9, the loss is 0.1.
    """

    title = "Smooth-AP"
    summary = "Raises the average precision of each anchor's ranking, its ranks counted by sigmoids."
    family = "ranking"
    activity = "softmax"
    paper = Paper(
        "Brown, Xie, Kalogeiton, Zisserman",
        2020,
        "Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval",
        "https://arxiv.org/abs/2007.12163",
    )
    equation = (
        r"1 - \frac{1}{|P|} \sum_{i \in P} \frac{1 + \sum_{j \in P, j \ne i} \sigma(d_{ij} / \tau)}"
        r"{1 + \sum_{j \in P \cup N, j \ne i} \sigma(d_{ij} / \tau)}, \quad d_{ij} = s_{aj} - s_{ai}"
    )
    pml = PmlSpelling("SmoothAPLoss")
    default_distance = CosineSimilarity
    needs_similarity = True
    not_claimed: ClassVar[dict[str, str]] = {
        "pair weights": "an anchor is ranked among its own positives, so its pair with itself has a weight",
        "temperature": "ranks are numbers, whatever the unit of the similarity",
    }

    temperature = Param(
        0.01,
        valid=positive,
        explore=(0.001, 0.2),
        symbol=r"\tau",
        meaning="width of the sigmoid that stands for the step of a rank",
        larger="gradient from pairs farther out of order, coarser ranks",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive."""
        present = pairs.positive.any(1)
        same = pairs.positive
        if (itself := pairs.batch.itself) is not None:
            same = same | (itself & present.unsqueeze(1))
        before, above, kept = counts_before(pairs.values, same, pairs.negative, self.temperature)
        rank = before + 0.5  # 1 + the others: the item counted itself as one half
        precision = (rank / (rank + above) * kept.to(rank.dtype)).sum(1)
        return {"loss": pairs.over_anchors(1 - precision / kept.sum(1).clamp_min(1), present)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        present = positives > 0
        values = negatives / (2 + positives + negatives) * present
        return float(values.sum() / present.sum().clamp_min(1))
