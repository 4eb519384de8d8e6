"""Cosine embedding loss on given pairs, or on labelled embeddings."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.direct import DirectLoss
from losslib.distances import CosineSimilarity
from losslib.errors import ShapeError
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite
from losslib.precision import values_are_known
from losslib.terms import IndexedTerm, Term
from losslib.types import Mark, Paper


class CosineEmbeddingLoss(DirectLoss):
    """Turns similar pairs into one direction and dissimilar ones beyond a cosine.

    Similar pairs pull until they are parallel, however near they are; a dissimilar pair below `margin`
    gives no gradient. Each call moves a pair one way only. All pairs share one mean, so in a batch of many
    classes the few similar pairs weigh little.

    Shapes: x1, x2 (B, D), paired by row, and target (B,) of 1 (similar) or -1; or embeddings (B, D) and
    labels (B,) like other losses, over all pairs, with ref_emb (R, D) and ref_labels (R,) or index tuples.

    Returns the mean over all pairs jointly (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity.

    Terms: `loss`, one value per pair: 1 - s if similar, max(0, s - margin) if not.

    Numerics: a row of zeros has similarity 0 and passes no gradient.

    Differs from torch.nn.CosineEmbeddingLoss only in taking labels too.

    Example: a dissimilar pair in the same direction, margin 0.5: the loss is 0.5.
    """

    title = "Cosine embedding"
    summary = "Turns similar pairs into one direction and dissimilar ones beyond a cosine."
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Payne, Heil, and the PyTorch authors",
        2017,
        "torch.nn.CosineEmbeddingLoss",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineEmbeddingLoss.html",
    )
    equation = r"1 - s_p \;\text{ if similar},\quad \max(0, s_n - m) \;\text{ if not}"
    default_distance = CosineSimilarity
    needs_similarity = True
    direct_arguments = ("x1", "x2", "target")

    margin = Param(
        0.0,
        valid=finite,
        explore=(-0.5, 0.9),
        symbol="m",
        meaning="similarity under which a dissimilar pair contributes nothing",
        larger="tolerates more similar negatives",
    )

    def direct_terms(self, x1: Tensor, x2: Tensor, target: Tensor) -> dict[str, Term]:
        """`loss` per row of x1, x2 (B, D) with target (B,)."""
        if target.ndim != 1 or len(target) != len(x1):
            raise ShapeError(
                f"CosineEmbeddingLoss: target must have shape ({len(x1)},), got {tuple(target.shape)}"
            )
        similar = target.to(x1.device) == 1
        if values_are_known(target) and not bool(((target == 1) | (target == -1)).all()):
            raise ShapeError("CosineEmbeddingLoss: target must hold 1 and -1 only, got other values")
        similarity = self.distance.pairwise(x1, x2)
        values = torch.where(similar, 1 - similarity, (similarity - self.margin).relu())
        return {"loss": IndexedTerm(values, torch.arange(len(x1), device=x1.device))}

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per pair, similar and dissimilar ones jointly."""
        return {"loss": pairs.over_pairs(1 - pairs.values, (pairs.values - self.margin).relu())}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        open_ = max(1 - self.margin, 0.0) * negatives.sum()
        return float(open_ / (positives + negatives).sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The margin, as a line for the negatives."""
        return (Mark("line", "negative", self.margin, "m", "margin"),)
