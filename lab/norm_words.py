"""The norm lesson in sentences, every one with its numbers."""

from __future__ import annotations

import math

from lab.norms import NormLesson
from lab.percent import percent
from lab.short import short

CLEARLY_APART = 0.01  # difference of two AUCs worth a word
ALIKE = 0.995


def norm_sentences(lesson: NormLesson, output: str = "") -> list[str]:
    """What the norms are, and why.

    Args:
        lesson: of `lab.norms.norm_lesson`.
        output: the encoder's output normalisation, "" when unknown.
    """
    norms, size = lesson.norms, lesson.size
    said = [
        f"Norms of {len(norms):,} embeddings: mean {short(norms.mean())}, standard deviation "
        f"{norms.std():.2g} ({percent(lesson.deviation)} of the mean), from {short(norms.min())} to "
        f"{short(norms.max())}."
    ]
    root = math.sqrt(size)
    if output == "l2":
        said.append("L2 normalisation divides every embedding by its length, so every norm is 1.")
    elif output == "layernorm":
        said.append(
            f"LayerNorm gives every embedding mean 0 and variance 1 over its own {size} coordinates, so "
            f"every norm is √{size} = {short(root)}: like L2 it leaves only directions."
        )
        if size == 2:
            said.append("With two coordinates only two places remain, (1, -1) and (-1, 1).")
    elif output == "batchnorm":
        said.append(
            f"BatchNorm gives every coordinate mean 0 and variance 1 over the batch: norms lie around "
            f"√{size} = {short(root)} (root mean square here {short(math.sqrt(float((norms**2).mean())))}), "
            "but each keeps its own."
        )
    elif output == "none":
        said.append("Without output normalisation nothing holds the norms: the loss alone moves them.")
    if lesson.zeros:
        said.append(
            f"{lesson.zeros} embeddings have length 0: they have no direction, their cosine counts as 0."
        )
    return said


def distance_sentences(lesson: NormLesson) -> list[str]:
    """What Euclidean distance and cosine similarity make of the same pairs."""
    if lesson.example is None:
        return ["There are no pairs to measure."]
    return [_identity(lesson), _ranking(lesson), *_separation(lesson), _range(lesson)]


def _identity(lesson: NormLesson) -> str:
    distance, similarity = lesson.example or (math.nan, math.nan)
    if not lesson.equal_norms:
        return (
            f"Lengths differ: {percent(lesson.length_share)} of the squared distances comes from "
            "differences of length, which cosine similarity does not see: d² = (|a| − |b|)² + 2|a||b|(1 − s)."
        )
    square = float((lesson.norms**2).mean())
    unit = abs(square - 1) < 0.01
    formula = "d² = 2 − 2s" if unit else f"d² = 2r²(1 − s) with r² = {short(square)}"
    expected = 2 * square * (1 - similarity)
    return (
        f"All norms are equal, so {formula}: the middle pair has s = {similarity:.3f}, which gives "
        f"{expected:.3f}, and its measured d² is {distance**2:.3f} (largest gap of all pairs "
        f"{lesson.identity_gap * square:.2g})."
    )


def _ranking(lesson: NormLesson) -> str:
    agreement = lesson.rank_agreement
    if math.isnan(agreement):
        return "All pairs are equally close, so there is no ranking to compare."
    if agreement >= ALIKE:
        return f"Both rank the pairs alike (Spearman {agreement:.3f}; 1 is the same order)."
    return f"They rank the pairs differently (Spearman {agreement:.3f}; 1 is the same order)."


def _separation(lesson: NormLesson) -> list[str]:
    euclidean, cosine = lesson.euclidean, lesson.cosine
    if math.isnan(euclidean.auc):
        return ["There are not both positive and negative pairs, so there is nothing to separate."]
    gap = euclidean.auc - cosine.auc
    better = "Euclidean distance" if gap > 0 else "cosine similarity"
    verdict = f"{better} separates better here" if abs(gap) >= CLEARLY_APART else "neither separates better"
    said = (
        f"A positive pair is closer than a negative one in {percent(euclidean.auc)} of cases by Euclidean "
        f"distance and in {percent(cosine.auc)} by cosine similarity (chance is 50 %): {verdict}."
    )
    thresholds = (
        f"The best single threshold gets {percent(euclidean.threshold.right)} right at d = "
        f"{short(euclidean.threshold.value)}, and {percent(cosine.threshold.right)} at s = "
        f"{short(cosine.threshold.value)} (mean over both kinds)."
    )
    return [said, thresholds]


def _range(lesson: NormLesson) -> str:
    return (
        f"Cosine similarity stays between -1 and 1; the largest Euclidean distance here is "
        f"{short(lesson.euclidean.histogram.high)}. The same margin means another thing under each."
    )
