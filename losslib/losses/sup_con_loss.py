"""Supervised contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, positive
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import logsumexp_over
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class SupConLoss(PairLoss):
    """Asks all positives of an anchor to be more similar to it than everything else in the batch.

    Every anchor with a positive has some gradient at all times. The positives compete with each other in
    the denominator, so several positives can never all be satisfied and the loss has a floor above 0; at
    total collapse it rests at the logarithm of the number of other samples.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a loss above 0 (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per anchor with at least one positive, also without any negative. With a
    distance, the similarity is the distance negated. A pair given twice counts once.

    Numerics: shifted log-sum-exp, so any temperature is safe.

    Differs from pytorch-metric-learning only where the batch has one class: there it is 0.

    Example: one positive at similarity 1, one negative at 0, temperature 1: log(1 + exp(-1)) = 0.3133.
    """

    title = "SupCon"
    summary = "Asks all positives of an anchor to be more similar to it than everything else in the batch."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Khosla, Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu, Krishnan",
        2020,
        "Supervised Contrastive Learning",
        "https://arxiv.org/abs/2004.11362",
    )
    equation = (
        r"-\frac{1}{|P(a)|} \sum_{p \in P(a)}"
        r" \log \frac{\exp(s_{ap} / \tau)}{\sum_{j \ne a} \exp(s_{aj} / \tau)}"
    )
    pml = PmlSpelling("SupConLoss")
    default_distance = CosineSimilarity
    default_reducer = AvgNonZeroReducer

    temperature = Param(
        0.1,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\tau",
        meaning="scale that similarities are divided by",
        larger="spreads the push over more pairs",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive."""
        logits = pairs.similarity / self.temperature
        everything = logsumexp_over(logits, pairs.positive | pairs.negative)
        positives = pairs.positive.to(logits.dtype)
        count = positives.sum(1)
        present = count > 0
        mean = (logits * positives).sum(1) / count.clamp_min(1)
        values = torch.where(present, everything, 0.0) - mean
        return {"loss": pairs.over_anchors(values, present)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        values = (positives + negatives).clamp_min(1).log()
        above = (positives > 0) & (values > 0)
        return float((values * above).sum() / above.sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: the negatives' weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", self.temperature, r"\tau", "temperature"),)
