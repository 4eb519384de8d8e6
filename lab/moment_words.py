"""What the figures of one moment show, in sentences with their numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.brief import brief
from lab.frame import Histogram
from lab.moment import Standing
from lab.neighbours import Neighbourhoods
from lab.percent import percent
from lab.short import short
from losslib.types import Mark

COARSE = 0.2  # share of pairs of pairs in one bin from which on bounds are said, not their middle
UNTOLD = 0.9


def map_words(classes: NDArray[np.integer[Any]], names: Sequence[str], standing: Standing | None) -> str:
    """How many points, how tight the classes are, and how many points are nearer to another class's mean."""
    present = np.unique(classes)
    count = f"{len(classes):,} points of {len(present)} class{'es' if len(present) != 1 else ''}."
    if standing is None or not len(classes):
        return count
    names = brief(names)
    tight = [float(standing.to_own[classes == c].mean()) for c in present]
    first, last = int(np.argmin(tight)), int(np.argmax(tight))
    said = [count]
    if len(present) > 1:
        said.append(
            f"The tightest class is {names[present[first]]} (mean distance to its own mean "
            f"{short(tight[first])}), the widest {names[present[last]]} ({short(tight[last])})."
        )
        share = float(standing.astray.mean())
        said.append(f"{percent(share)} of the points are nearer to another class's mean than to their own.")
    else:
        said.append(f"Mean distance to its mean: {short(tight[0])}.")
    return " ".join(said)


def chosen_words(
    chosen: NDArray[np.integer[Any]], classes: NDArray[np.integer[Any]], names: Sequence[str]
) -> str:
    """How many points were chosen and of which classes, most frequent first."""
    counts = np.bincount(classes[chosen], minlength=len(names))
    order = [c for c in np.argsort(-counts, kind="stable") if counts[c]]
    shown = brief(names)
    listed = ", ".join(f"{counts[c]} of class {shown[c]}" for c in order)
    return f"{len(chosen)} point{'s' if len(chosen) != 1 else ''} chosen: {listed}."


def kept_words(both: Neighbourhoods, k: int, view: str) -> str:
    """What the map keeps of k neighbours, beside chance, and how far strangers among them are."""
    kept, chance = float(both.kept()[k - 1]), float(both.chance()[k - 1])
    trust = float(both.trust_by_point(k).mean())
    return (
        f"Of each point's {k} nearest neighbours among {both.count:,} embeddings, {view} keeps "
        f"{percent(kept)} among the {k} nearest on the map; a map of points thrown at random "
        f"keeps {percent(chance)}. "
        f"Trustworthiness {trust:.3f} (1: no strangers among the nearest; a random map has about 0.5)."
    )


def distances_words(histogram: Histogram, marks: Sequence[Mark], inverted: bool) -> str:
    """Medians of positive and negative pairs, how often a positive is closer, and where the margins lie."""
    positive, negative = (np.asarray(side, dtype=float) for side in (histogram.positive, histogram.negative))
    said = []
    for name, counts in (("Positive", positive), ("negative", negative)):
        if counts.sum():
            said.append(f"{name} pairs have a median of {short(median(histogram, counts))}")
    if not said:
        return "There are no pairs to measure."
    text = f"{', '.join(said)} ({'larger' if inverted else 'smaller'} is closer)."
    if positive.sum() and negative.sum():
        text += closer_words(*closer_share(positive, negative, inverted))
    lines = [f"{mark.label} {short(mark.value)}" for mark in marks if math.isfinite(mark.value)]
    return f"{text} Drawn: {', '.join(lines)}." if lines else text


def median(histogram: Histogram, counts: NDArray[np.floating[Any]]) -> float:
    """The median as far as bins tell: evenly spread within its bin."""
    half, before = counts.sum() / 2, counts.cumsum() - counts
    place = int(np.flatnonzero(before + counts >= half)[0])
    width = (histogram.high - histogram.low) / len(counts)
    return float(histogram.low + width * (place + (half - before[place]) / counts[place]))


def closer_words(least: float, most: float) -> str:
    """In how many cases a positive pair is closer than a negative one, as far as bins tell."""
    if most - least > UNTOLD:
        return " Positive and negative pairs share a bin, which cannot tell which are closer."
    coarse = most - least > COARSE
    share = f"{percent(least, 0)} to {percent(most, 0)}" if coarse else percent((least + most) / 2)
    return f" A positive pair is closer than a negative one in {share} of cases (chance is 50 %)."


def closer_share(
    positive: NDArray[np.floating[Any]], negative: NDArray[np.floating[Any]], inverted: bool
) -> tuple[float, float]:
    """Bounds of the probability that a positive pair is closer than a negative one.

    A positive and a negative pair of one bin: farther for the lower bound, closer for the upper one.
    """
    if inverted:
        positive, negative = positive[::-1], negative[::-1]
    further = negative.sum() - negative.cumsum()
    every = positive.sum() * negative.sum()
    least = float((positive * further).sum() / every)
    return least, least + float((positive * negative).sum() / every)


def curves_words(curves: Mapping[str, NDArray[np.floating[Any]]], step: int, chance: float) -> str:
    """The loss from its first to the shown step, and quality beside chance."""
    upto = curves["step"] <= step
    losses = curves["loss"][upto & np.isfinite(curves["loss"])]
    said = []
    if len(losses):
        said.append(f"The loss of the batch went from {losses[0]:.4g} to {losses[-1]:.4g} at step {step}.")
    for key, name in (("recall_at_1", "recall@1"), ("map_at_r", "MAP@R")):
        known = upto & np.isfinite(curves[key])
        values = curves[key][known]
        if len(values):
            last = int(curves["step"][known][-1])  # MAP@R is measured at some steps only
            when = "" if last == curves["step"][upto][-1] else f" at step {last}"
            beside = (
                f" (chance is {percent(chance, 0)})"
                if key == "recall_at_1" and not math.isnan(chance)
                else ""
            )
            said.append(f"{name} went from {percent(values[0])} to {percent(values[-1])}{when}{beside}.")
    return " ".join(said) or "There are no steps yet."
