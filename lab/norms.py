"""Norms of embeddings, and what Euclidean distance and cosine similarity make of the same pairs.

Euclidean distance sees length and direction, cosine similarity only direction:
d^2 = (|a| - |b|)^2 + 2 |a| |b| (1 - s). How far the two part is a matter of the norms, so of the output
normalisation. Arrays in, numbers out; any embeddings with labels will do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.frame import Histogram
from losslib.errors import ParameterError, ShapeError

Points = NDArray[np.floating[Any]]
Labels = NDArray[np.integer[Any]]

OUTPUTS = {"none": "none", "l2": "L2", "layernorm": "LayerNorm", "batchnorm": "BatchNorm"}
EPSILON = 1e-5  # of torch's LayerNorm and BatchNorm
EQUAL_NORMS = 0.01  # relative deviation up to which norms count as equal: 16-bit embeddings reach 0.001
PAIRS = 10_000
BINS = 64


class Threshold(NamedTuple):
    """The one threshold that tells positive from negative pairs best.

    value is on the distance's axis; right the mean share of both kinds on their right side, 0.5 to 1.
    """

    value: float
    right: float


@dataclass(frozen=True)
class Separation:
    """What one distance or similarity makes of the pairs.

    Attributes:
        title: the distance in words.
        inverted: whether larger is closer.
        histogram: of positive and negative pairs.
        auc: probability that a positive pair is closer than a negative one, ties counted half; NaN without
            pairs of both kinds.
        threshold: see `Threshold`; NaN without pairs of both kinds.
    """

    title: str
    inverted: bool
    histogram: Histogram
    auc: float
    threshold: Threshold


@dataclass(frozen=True)
class NormLesson:
    """Norms and both distances of one set of embeddings.

    Attributes:
        norms: (N,).
        size: coordinates of an embedding.
        euclidean, cosine: the same pairs by each.
        rank_agreement: Spearman's correlation of closeness by the two, 1 when they rank all pairs alike;
            NaN when one of them is constant.
        length_share: share of the squared distances that comes from differences of length, 0 to 1.
        identity_gap: largest |d^2 - 2 r^2 (1 - s)| / r^2 of the pairs, r^2 the mean squared norm: 0 when
            all norms are equal.
        example: (d, s) of the pair in the middle by similarity; None without pairs.
        zeros: embeddings of length 0, whose cosine counts as 0.
    """

    norms: NDArray[np.float64]
    size: int
    euclidean: Separation
    cosine: Separation
    rank_agreement: float
    length_share: float
    identity_gap: float
    example: tuple[float, float] | None
    zeros: int

    @property
    def deviation(self) -> float:
        """Standard deviation of the norms divided by their mean; 0 when all are equal."""
        mean = float(self.norms.mean())
        return float(self.norms.std()) / mean if mean else 0.0

    @property
    def equal_norms(self) -> bool:
        """Whether all norms are equal as far as 16-bit embeddings tell."""
        return self.deviation <= EQUAL_NORMS and not self.zeros


def norm_lesson(embeddings: Points, labels: Labels, pairs: int = PAIRS, seed: int = 0) -> NormLesson:
    """Norms and distances of embeddings.

    Args:
        embeddings: (N, D) finite, N >= 1.
        labels: (N,); two embeddings with the same label are a positive pair.
        pairs: at most that many pairs of each kind are drawn, as many of one kind as of the other where
            there are enough.
        seed: fixes which.

    Raises:
        ShapeError: embeddings are not (N, D), or labels not (N,).
        ParameterError: there are none, or some coordinate is not finite.
    """
    points = checked(embeddings, labels)
    from lab.probe import sample_pairs

    rng = np.random.default_rng([seed, 5])
    classes = labels.astype(np.int64)
    drawn = [sample_pairs(classes, positive, pairs, rng) for positive in (True, False)]
    first, second = (np.concatenate([side[end] for side in drawn]) for end in (0, 1))
    positive = np.arange(len(first)) < len(drawn[0][0])
    norms = np.linalg.norm(points, axis=1)
    directions = points / np.where(norms > 0, norms, 1.0)[:, None]
    distances = np.linalg.norm(points[first] - points[second], axis=1)
    similarities = (directions[first] * directions[second]).sum(axis=1).clip(-1.0, 1.0)
    squares, radius = distances**2, float((norms**2).mean())
    gaps = np.abs(squares - 2 * radius * (1 - similarities))
    middle = int(similarities.argsort()[len(first) // 2]) if len(first) else None
    return NormLesson(
        norms=norms,
        size=points.shape[1],
        euclidean=separation("Euclidean distance", False, distances, positive),
        cosine=separation("cosine similarity", True, similarities, positive),
        rank_agreement=spearman(-distances, similarities),
        length_share=float(((norms[first] - norms[second]) ** 2).sum() / total)
        if (total := squares.sum())
        else 0.0,
        identity_gap=float(gaps.max(initial=0.0)) / radius if radius else 0.0,
        example=None if middle is None else (float(distances[middle]), float(similarities[middle])),
        zeros=int((norms == 0).sum()),
    )


def checked(embeddings: Points, labels: Labels) -> NDArray[np.float64]:
    """The embeddings in double precision, once they are what is expected."""
    if embeddings.ndim != 2 or labels.shape != embeddings.shape[:1]:
        raise ShapeError(
            f"expected embeddings (N, D) and labels (N,), got {embeddings.shape} and {labels.shape}"
        )
    points = embeddings.astype(np.float64)
    if not len(points) or not np.isfinite(points).all():
        raise ParameterError("norms need at least one embedding, and all of them finite")
    return points


def normalised(embeddings: Points, output: str) -> NDArray[np.float64]:
    """What an output normalisation makes of embeddings, (N, D): "none", "l2", "layernorm" or "batchnorm".

    As torch's layers without learned scale and shift; BatchNorm takes its statistics from all rows.
    """
    points = embeddings.astype(np.float64)
    if output == "none":
        return points
    if output == "l2":
        norms = np.linalg.norm(points, axis=1, keepdims=True)
        unit: NDArray[np.float64] = points / np.maximum(norms, 1e-12)
        return unit
    if output not in OUTPUTS:
        raise ParameterError(f"output must be one of {', '.join(OUTPUTS)}, got {output!r}")
    axis = 1 if output == "layernorm" else 0
    centred = points - points.mean(axis=axis, keepdims=True)
    scaled: NDArray[np.float64] = centred / np.sqrt(points.var(axis=axis, keepdims=True) + EPSILON)
    return scaled


def separation(title: str, inverted: bool, values: Points, positive: NDArray[np.bool_]) -> Separation:
    """Histogram, AUC and best threshold of pairs' values, (P,)."""
    low, high = (-1.0, 1.0) if inverted else (0.0, float(values.max(initial=0.0)) or 1.0)
    sides = [np.histogram(values[side], BINS, (low, high))[0] for side in (positive, ~positive)]
    histogram = Histogram(low, high, *(side.astype(np.int32) for side in sides))
    closeness = values if inverted else -values
    best = best_threshold(closeness[positive], closeness[~positive])
    on_axis = best if inverted else Threshold(-best.value, best.right)
    return Separation(title, inverted, histogram, auc(closeness[positive], closeness[~positive]), on_axis)


def auc(positive: Points, negative: Points) -> float:
    """Probability that a positive's closeness is above a negative's, ties counted half; NaN without both."""
    if not len(positive) or not len(negative):
        return math.nan
    ordered = np.sort(negative)
    below, not_above = (np.searchsorted(ordered, positive, side) for side in ("left", "right"))
    return float((below + not_above).sum() / 2 / len(positive) / len(negative))


def best_threshold(positive: Points, negative: Points) -> Threshold:
    """Where "closeness of at least t" holds for most positives and fewest negatives; see `Threshold`."""
    if not len(positive) or not len(negative):
        return Threshold(math.nan, math.nan)
    values = np.unique(np.concatenate([positive, negative]))
    kept = 1 - np.searchsorted(np.sort(positive), values, "left") / len(positive)
    left_out = np.searchsorted(np.sort(negative), values, "left") / len(negative)
    right = (kept + left_out) / 2
    best = int(right.argmax())
    value = (
        values[best] + values[max(best - 1, 0)]
    ) / 2  # between the last wrong value and the first right one
    return Threshold(float(value), float(right[best]))


def spearman(first: Points, second: Points) -> float:
    """Spearman's rank correlation, ties at their mean rank, -1 to 1; NaN when one of them is constant."""
    if len(first) < 2:
        return math.nan
    ranked = [mean_ranks(values) for values in (first, second)]
    a, b = (values - values.mean() for values in ranked)
    scale = math.sqrt(float((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / scale if scale else math.nan


def mean_ranks(values: Points) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (counts.cumsum() - (counts - 1) / 2)[place]
    return ranks


class Afterwards(NamedTuple):
    """One row of the comparison: the same embeddings after one more normalisation.

    norm_mean and norm_deviation describe the norms; the rest is as in `NormLesson`.
    """

    output: str
    norm_mean: float
    norm_deviation: float
    euclidean_auc: float
    cosine_auc: float
    rank_agreement: float


def comparison(embeddings: Points, labels: Labels, seed: int = 0) -> tuple[Afterwards, ...]:
    """The same embeddings, and the same pairs, as they are and after L2, LayerNorm and BatchNorm."""
    rows = []
    for output in OUTPUTS:
        lesson = norm_lesson(normalised(embeddings, output), labels, seed=seed)
        mean, deviation = float(lesson.norms.mean()), float(lesson.norms.std())
        aucs = lesson.euclidean.auc, lesson.cosine.auc
        rows.append(Afterwards(output, mean, deviation, *aucs, lesson.rank_agreement))
    return tuple(rows)
