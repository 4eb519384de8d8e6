"""Instance loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class InstanceLoss(PairLoss):
    """Classifies each row among all rows of the batch, its own class's rows and itself being right.

    With one row a class it tells every sample from every other. As a row is always most similar to itself,
    it mainly pushes: positives that are as near as the row itself are pulled no further, and far ones
    hardly count. Rows of the same sample under two labels push each other away.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,). With a reference a row is not
    among the right ones itself.

    Returns the mean over the anchors (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity.

    Terms: `loss`, one value per anchor with a pair; with a reference, per anchor with a positive. A pair
    given twice counts once.

    Numerics: two shifted log-sum-exps a row, and a softplus of their difference. The row's similarity to
    itself is not an entry of the matrix, so it has no pair weight.

    Differs from the paper, whose classes have learned proxies (that is NormalizedSoftmaxLoss), and from
    pytorch-metric-learning, which takes the row whose number is the label's rank for the right one; with
    labels 0 to B-1 the two agree.

    Example: two rows of two classes at cosine 0, gamma 1: log(1 + exp(-1)) = 0.3133.
    """

    title = "Instance"
    summary = "Classifies each row among all rows of the batch, where its own class's rows are right."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Zheng, Zheng, Garrett, Yang, Xu, Shen",
        2020,
        "Dual-Path Convolutional Image-Text Embeddings with Instance Loss",
        "https://arxiv.org/abs/1711.05535",
    )
    equation = r"-\log \frac{\sum_{j : y_j = y_i} \exp(\gamma s_{ij})}{\sum_j \exp(\gamma s_{ij})}"
    pml = PmlSpelling("InstanceLoss")
    default_distance = CosineSimilarity
    needs_similarity = True

    gamma = Param(
        64.0,
        valid=positive,
        explore=(1.0, 100.0),
        symbol=r"\gamma",
        meaning="factor of the similarities in the softmax",
        larger="leaves the gradient to the nearest negatives",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor."""
        similarity, right, wrong = pairs.values, pairs.positive, pairs.negative
        there = right.any(1)
        if (itself := pairs.batch.itself) is not None:
            there = (right | wrong).any(1)
            own = self.distance.pairwise(pairs.batch.embeddings, pairs.batch.embeddings)
            similarity = torch.where(itself, own.unsqueeze(1), similarity)
            right = right | itself
        logits = similarity * self.gamma
        far, near = logsumexp_over(logits, wrong), logsumexp_over(logits, right)
        absent = there.logical_not()
        # softplus(far - near) keeps the digits of a small value, which the difference of two sums would lose
        value = softplus(far.masked_fill(absent, -torch.inf) - near.masked_fill(absent, 0))
        return {"loss": pairs.over_anchors(value, there)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        values = ((positives + negatives + 1) / (positives + 1)).log()
        return float(values.mean()) if len(labels) > 1 else 0.0

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: the negatives' weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", 1 / self.gamma, r"1 / \gamma", "temperature"),)
