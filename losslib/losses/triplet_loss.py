"""Triplet loss on given anchors, positives and negatives, or on labelled embeddings."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.all_triplets import HingeTripletsTerm
from losslib.direct import DirectLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite
from losslib.terms import IndexedTerm, Term
from losslib.types import Mark, Paper, PmlSpelling, TripletIndices


class TripletLoss(DirectLoss):
    """Asks the positive of each row to be nearer to the anchor than the negative, by a margin.

    A row that keeps the margin gives no gradient, so triplets chosen at random soon teach nothing and hard
    ones must be looked for. With the cosine distance only angles count, and norms drift freely.

    Shapes: anchor, positive, negative, all (B, D), paired by row; or embeddings (B, D) and labels (B,) like
    other losses, over all triplets, with ref_emb (R, D) and ref_labels (R,) or index tuples.

    Returns the mean over all rows or triplets (0-d), those that keep the margin counted as 0.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per row or triplet. The default cosine distance is 1 - cosine similarity; for
    the Euclidean form use `distance=LpDistance(normalize_embeddings=False)`.

    Numerics: all triplets are summed from sorted rows, in B x R memory.

    Differs from TripletMarginLoss in its default distance, its margin and its mean.

    Example: cosines 0.9 to the positive and 0.8 to the negative, margin 0.35: 0.1 - 0.2 + 0.35 = 0.25.
    """

    title = "Triplet"
    summary = "Asks the positive of each row to be nearer to the anchor than the negative, by a margin."
    family = "triplet"
    activity = "hinge"
    paper = Paper(
        "Schroff, Kalenichenko, Philbin",
        2015,
        "FaceNet: A Unified Embedding for Face Recognition and Clustering",
        "https://arxiv.org/abs/1503.03832",
    )
    equation = r"\max\left(0, d(r_a, r_p) - d(r_a, r_n) + m\right)"
    pml = PmlSpelling("TripletMarginLoss")
    default_distance = CosineSimilarity
    direct_arguments = ("anchor", "positive", "negative")

    margin = Param(
        0.35,
        valid=finite,
        explore=(0.0, 0.5),
        symbol="m",
        meaning="by how much the negative must be farther than the positive",
        larger="keeps more triplets active",
    )

    def direct_terms(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> dict[str, Term]:
        """`loss` per row of three embeddings (B, D)."""
        near = self.distance.pairwise(anchor, positive)
        far = self.distance.pairwise(anchor, negative)
        rows = torch.arange(len(anchor), device=anchor.device)
        return {"loss": IndexedTerm((self.distance.margin(near, far) + self.margin).relu(), rows)}

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per triplet."""
        separation = pairs.separation
        triplets: TripletIndices | None = pairs.triplets("all")
        if triplets is None:
            return {"loss": HingeTripletsTerm(separation, pairs.positive, pairs.negative, self.margin)}
        anchors, positives, negatives = triplets
        violation = separation[anchors, positives] - separation[anchors, negatives] + self.margin
        return {"loss": IndexedTerm(violation.relu(), triplets)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        return max(self.margin, 0.0) if (positives * negatives).any() else 0.0

    def marks(self) -> tuple[Mark, ...]:
        """The margin, as the gap required between positive and negative distances."""
        return (Mark("gap", "both", self.margin, "m", "margin"),)
