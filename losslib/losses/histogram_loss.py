"""Histogram loss."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from losslib.base import PairLoss
from losslib.distance_rules import require_bounded
from losslib.distances import CosineSimilarity, Distance
from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Integer, Param
from losslib.terms import Term, reduced_term
from losslib.types import Paper, PmlSpelling


class HistogramLoss(PairLoss):
    """Lowers the chance that a random negative pair is more similar than a random positive pair.

    The two kinds of pairs are compared as distributions over the whole batch, with no margin to set: what
    counts is their overlap. Where the histograms do not overlap nothing gives gradient. A pair's gradient
    depends on the other kind's density at its similarity, so small batches are noisy.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the estimated chance (0-d), from 0 to 1; 0 where there is no triplet.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance without both ends. There is no reducer.

    Terms: `loss`, already reduced. The pairs are those that stand in a triplet: their anchor has a positive
    and a negative. Inside a batch a pair and its reverse are one pair; with a reference set every anchor and
    reference is one. A distance is turned into a similarity.

    Numerics: each value goes to the two bins beside it in proportion; the bins divide the range of the
    similarity.

    Differs from pytorch-metric-learning in the option's name, `n_bins` there (or `delta`, the width), in
    taking the bins in full precision, and in the direction of a distance.

    Example: two bins over cosines, positives at 0, negatives at -1 and 1: densities (0, 1, 0) and
    (1/2, 0, 1/2), the chance is 1/2.
    """

    title = "Histogram"
    summary = "Lowers the chance that a random negative pair is more similar than a random positive pair."
    family = "ranking"
    activity = "softmax"
    paper = Paper(
        "Ustinova, Lempitsky",
        2016,
        "Learning Deep Embeddings with Histogram Loss",
        "https://arxiv.org/abs/1611.00822",
    )
    equation = r"\sum_{r=1}^{R+1} h^-_r \sum_{q=1}^{r} h^+_q"
    pml = PmlSpelling("HistogramLoss", {"num_bins": "n_bins"})
    default_distance = CosineSimilarity
    default_reducer = staticmethod(no_reducer)
    parts = ("distance", "embedding_regularizer", "embedding_reg_weight")
    not_claimed: ClassVar[dict[str, str]] = {
        "pair weights": "a pair and its reverse are one, and the weight stands at one of the two places",
        "positive pairs": "a positive gives gradient only in the bins that negatives lie in",
        "hard pairs": "the pull on a pair is the other kind's density at its similarity, which may be 0",
    }

    num_bins = Param(
        100,
        valid=Integer(1),
        explore=(4, 200),
        symbol="R",
        meaning="number of intervals that the similarity's range is divided into",
        larger="finer densities, sparser gradient",
        title="Bins",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless the distance has both ends."""
        require_bounded(self, distance)

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss`, already reduced."""
        low, high = self.distance.bounds()
        least = low if self.distance.is_inverted else -high
        place = (pairs.similarity - least) / ((high - low) / self.num_bins)
        below = place.detach().nan_to_num(0.0).floor().clamp(0, self.num_bins - 1)  # the share stays NaN
        full = pairs.positive.any(1, keepdim=True) & pairs.negative.any(1, keepdim=True)
        near, far = (
            self._density(below, place - below, _once(mask & full, pairs.batch.ref_emb is None))
            for mask in (pairs.positive, pairs.negative)
        )
        return {"loss": reduced_term((far * near.cumsum(0)).sum())}

    def _density(self, below: Tensor, share: Tensor, mask: Tensor) -> Tensor:
        """The masked values' density over the nodes between bins, (num_bins + 1,)."""
        weight = mask.to(share.dtype) / mask.sum().clamp_min(1)
        place = below.long().flatten()
        nodes = share.new_zeros(self.num_bins + 1)
        nodes = nodes.index_add(0, place, ((1 - share) * weight).flatten())
        return nodes.index_add(0, place + 1, (share * weight).flatten())

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector: certain, where there is a triplet."""
        positives, negatives = pair_counts(labels)
        return float(bool((positives * negatives).any()))


def _once(mask: Tensor, one_set: bool) -> Tensor:
    """The mask with each unordered pair of one set at its place above the diagonal only."""
    return (mask | mask.t()).triu() if one_set else mask
