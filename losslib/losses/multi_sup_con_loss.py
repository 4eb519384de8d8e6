"""Supervised contrastive loss of label sets."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.distances.exact import widen
from losslib.errors import ShapeError
from losslib.inputs import Batch
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Interval, Param, positive
from losslib.reducers import AvgNonZeroReducer
from losslib.softmax import logsumexp_over
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class MultiSupConLoss(PairLoss):
    """Asks samples whose label sets overlap to be more similar to each other than to the rest of the batch.

    The larger the overlap of a positive with the anchor, the more it pulls. With a low threshold most of a
    batch is positive and little is left to push; with one label a sample it is SupCon. As there, the
    positives compete in the denominator and the loss has a floor above 0.

    Shapes: embeddings (B, D), labels boolean (B, C): row i's set of labels; ref_emb (R, D), ref_labels
    (R, C). Labels of shape (B,), one label a row, are sets of one.

    Returns the mean over the anchors with a loss above 0 (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per anchor with at least one positive. A positive is a sample whose Jaccard
    overlap with the anchor (labels in both over labels in either) reaches the threshold; all others are
    negatives. Samples without any label overlap with nothing. A tuple chooses the pairs itself: its positives
    are weighed by the overlap of their sets, and by 1 where no sets are given. A pair given twice counts
    once. With a distance, the similarity is the distance negated.

    Numerics: shifted log-sum-exp, so any temperature is safe; overlaps are compared in double precision.

    Differs from the paper in this form of the weights, which is that of public implementations with a
    threshold. pytorch-metric-learning 2.9 has no such loss.

    Example: one positive at similarity 1 and overlap 1/2, one negative at 0, temperature 1:
    log(1 + exp(-1)) / 2 = 0.1566.
    """

    title = "Multi-label SupCon"
    summary = "Asks samples whose label sets overlap to be more similar to each other than to the others."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Zhang, Wu",
        2024,
        "Multi-Label Supervised Contrastive Learning",
        "https://doi.org/10.1609/aaai.v38i15.29619",
    )
    equation = (
        r"-\frac{1}{|P(a)|} \sum_{p \in P(a)} J_{ap}"
        r" \log \frac{\exp(s_{ap} / \tau)}{\sum_{j \ne a} \exp(s_{aj} / \tau)},"
        r" \quad P(a) = \{p : J_{ap} \ge c\}"
    )
    pml: ClassVar[PmlSpelling | None] = None
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
    threshold = Param(
        0.5,
        valid=Interval(0.0, 1.0, closed="right"),
        explore=(0.1, 1.0),
        symbol="c",
        meaning="overlap of label sets from which on a pair is positive",
        larger="fewer positives, more negatives",
    )

    def read(self, *given: Any) -> Batch:
        """The inputs of a call, with labels (B, C) and references' labels (R, C) where they are sets."""
        x, labels, indices, y, ref_labels = given
        if not (_are_sets(labels) or _are_sets(ref_labels)):
            return super().read(*given)
        names = [None if value is None else _row_numbers(value) for value in (labels, ref_labels)]
        batch = super().read(x, names[0], indices, y, names[1])
        owner = type(self).__name__
        batch.labels = _read_sets(owner, "labels", labels, batch.embeddings)
        if batch.ref_emb is not None:
            batch.ref_labels = _read_sets(owner, "ref_labels", ref_labels, batch.ref_emb)
        return batch

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive."""
        overlap = _overlap(pairs.batch)
        if overlap is not None and pairs.listed is None and pairs.batch.masks is None:
            near = overlap >= self.threshold
            pairs.replace_masks(near, near.logical_not())
        logits = pairs.similarity / self.temperature
        everything = logsumexp_over(logits, pairs.positive | pairs.negative)
        count = pairs.positive.sum(1)
        present = count > 0
        weight = pairs.positive.to(logits.dtype)
        weight = weight if overlap is None else weight * overlap.to(logits.dtype)
        apart = torch.where(present, everything, 0.0).unsqueeze(1) - logits
        return {"loss": pairs.over_anchors((weight * apart).sum(1) / count.clamp_min(1), present)}

    def value_at_collapse(self, labels: Tensor) -> float | None:
        """The loss when all embeddings are one unit vector, for labels (B,); None for sets."""
        if labels.ndim != 1:
            return None
        positives, negatives = pair_counts(labels)
        values = (positives + negatives).clamp_min(1).log()
        above = (positives > 0) & (values > 0)
        return float((values * above).sum() / above.sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: the negatives' weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", self.temperature, r"\tau", "temperature"),)


def _are_sets(labels: Any) -> bool:
    return isinstance(labels, Tensor) and labels.ndim == 2 and labels.dtype == torch.bool


def _row_numbers(labels: Any) -> Any:
    """Numbers (N,) that stand for label sets (N, C) while the other inputs are read."""
    return torch.arange(len(labels), device=labels.device) if _are_sets(labels) else labels


def _read_sets(owner: str, name: str, labels: Any, x: Tensor) -> Tensor | None:
    if labels is None:
        return None
    if not _are_sets(labels):
        raise ShapeError(
            f"{owner}: labels and ref_labels must both be boolean label sets (N, C), got {name} of "
            f"{labels.dtype} and shape {tuple(labels.shape)}"
        )
    sets: Tensor = labels.to(x.device)
    return sets


def _overlap(batch: Batch) -> Tensor | None:
    """Jaccard overlap of the label sets of each pair, (B, R), 0 of empty sets; None without sets."""
    labels, others = batch.labels, batch.reference_labels
    if labels is None or others is None or labels.ndim != 2:
        return None
    if labels.shape[1] != others.shape[1]:
        raise ShapeError(
            f"MultiSupConLoss: ref_labels must have {labels.shape[1]} columns as labels have, "
            f"got {others.shape[1]}"
        )
    mine, theirs = (widen(sets.to(torch.float32))[0] for sets in (labels, others))
    both = mine @ theirs.t()
    either = mine.sum(1, keepdim=True) + theirs.sum(1) - both
    return both / either.clamp_min(1)
