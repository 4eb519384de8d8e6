"""Decoupled contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Optional, Param, positive
from losslib.softmax import logsumexp_over
from losslib.terms import Term
from losslib.types import Mark, Paper


class DecoupledContrastiveLoss(PairLoss):
    """Pulls each positive pair together and pushes all the anchor's negatives away, independently.

    Leaving the positive out of the denominator removes the factor that shrinks the gradient of easy, small
    batches. Nothing bounds the loss from below: it can be negative, and positives pull for ever. Reducers
    that drop values at or below 0 change the objective.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs whose anchor has a negative (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per positive pair whose anchor has a negative; the others are left out, but stay
    in the expectation of `sigma`. An anchor's other positives are not in its sum. With a distance, the
    similarity is the distance negated.

    Numerics: shifted log-sum-exp; the weights of `sigma` are a shifted softmax over all positive pairs and
    part of the graph.

    Differs from the paper in averaging where it sums. lightly's weighted form takes the weights out of the
    graph, and pytorch-metric-learning 2.9 has no such loss.

    Example: one positive at similarity 1, one negative at 0, temperature 1: -1 + log(exp(0)) = -1.
    """

    title = "Decoupled contrastive"
    summary = "Pulls each positive pair together and pushes all the anchor's negatives away, independently."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Yeh, Hong, Hsu, Liu, Chen, LeCun",
        2022,
        "Decoupled Contrastive Learning",
        "https://arxiv.org/abs/2110.06848",
    )
    equation = (
        r"-w_{ap} \frac{s_{ap}}{\tau} + \log \sum_n \exp\left(\frac{s_{an}}{\tau}\right),"
        r" \quad w_{ap} = 2 - \frac{\exp(s_{ap} / \sigma)}{\mathrm{E}[\exp(s / \sigma)]} \text{ or } 1"
    )
    default_distance = CosineSimilarity

    temperature = Param(
        0.1,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\tau",
        meaning="scale that similarities are divided by",
        larger="spreads the push over more negatives",
    )
    sigma = Param(
        None,
        valid=Optional(positive),
        explore=(0.1, 2.0),
        symbol=r"\sigma",
        meaning="scale of the weights that favour hard positives; none for equal weights",
        larger="nearer to equal weights",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per positive pair whose anchor has a negative."""
        logits = pairs.similarity / self.temperature
        has_negative = pairs.negative.any(1)
        push = torch.where(has_negative, logsumexp_over(logits, pairs.negative_count), 0.0)
        pull = logits if self.sigma is None else logits * self._weights(pairs)
        kept = has_negative.unsqueeze(1).expand_as(logits)
        return {"loss": pairs.over_positives(push.unsqueeze(1) - pull, kept)}

    def _weights(self, pairs: Pairs) -> Tensor:
        """2 - exp(s / sigma) / mean of exp(s / sigma) over the batch's positive pairs, (B, R)."""
        times = pairs.positive_count
        scaled = pairs.similarity / self.sigma
        # entries that are not positive pairs may be far larger: they must not reach the exponential
        scaled = scaled.masked_fill(pairs.positive.logical_not(), -torch.inf)
        repeats = times.to(scaled.dtype).clamp_min(1).log()
        number = times.sum()
        some = number > 0
        log_mean = (
            torch.logsumexp((scaled + repeats).flatten(), 0) - number.clamp_min(1).to(scaled.dtype).log()
        )
        return 2 - (scaled - torch.where(some, log_mean, 0.0)).exp()

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        kept = positives * (negatives > 0)
        return float((kept * negatives.clamp_min(1).log()).sum() / kept.sum().clamp_min(1))

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor, where it does not."""
        return "" if self.sigma is None else "with sigma its weights share one mean over all positive pairs"

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        if self.sigma is None:
            return {}
        return {"pair weights": "the weights share one mean: raising one pair's lowers those of the others"}

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: the negatives' weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", self.temperature, r"\tau", "temperature"),)
