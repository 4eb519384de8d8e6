"""Numbers that a lesson reads off its runs: declared by name in its file, computed from recordings alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.frame import Frame
from lab.percent import percent
from lab.recording import CURVES, Recording
from lab.short import short
from losslib.errors import ParameterError

Measure = Callable[..., float]


def measured(
    declared: Mapping[str, Mapping[str, Any]], recordings: Mapping[str, Recording]
) -> dict[str, float]:
    """The value of every measure of a lesson, in the order of its file.

    Args:
        declared: name to `of` (a measure's name), `run` (a run's name) and the measure's own options. The
            measures "difference" and "ratio" take `first` and `second`, names of measures before them.
        recordings: by name of the run.

    Raises:
        ParameterError: a measure or run that there is not.
    """
    found: dict[str, float] = {}
    for name, one in declared.items():
        options = {key: value for key, value in one.items() if key not in ("of", "run", "show")}
        kind = one["of"]
        if kind in BETWEEN:
            found[name] = BETWEEN[kind](found[options["first"]], found[options["second"]])
        elif kind in MEASURES:
            found[name] = float(MEASURES[kind](recordings[one.get("run", "a")], **options))
        else:
            known = ", ".join((*MEASURES, *BETWEEN))
            raise ParameterError(f"no measure is called {kind!r}; measures: {known}")
    return found


def shown(declared: Mapping[str, Mapping[str, Any]], values: Mapping[str, float]) -> dict[str, str]:
    """The values as texts: a share in percent, points of percent, or a number of three digits."""
    return {name: text_of(value, declared[name].get("show", "number")) for name, value in values.items()}


def text_of(value: float, how: str) -> str:
    """A value as `show` asks: "percent", "points" (with a sign) or "number"."""
    if math.isnan(value):
        return "undefined"
    if how == "percent":
        return percent(value, 0)
    if how == "points":
        return f"{100 * value:+.0f} points"
    return short(value) if abs(value) >= 5e-4 else "0"


def end(recording: Recording, curve: str, step: int | None = None) -> float:
    """A curve's value at the end of the run, or at its last frame at or before a step; NaN without one."""
    if curve not in CURVES:
        raise ParameterError(f"no curve is called {curve!r}; curves: {', '.join(CURVES)}")
    curves = recording.curves()
    wanted = np.isfinite(curves[curve])
    if step is not None:
        wanted &= curves["step"] <= step
    return float(curves[curve][wanted][-1]) if wanted.any() else math.nan


def change(recording: Recording, curve: str) -> float:
    """By how much a curve rose from frame 0 to the end."""
    return end(recording, curve) - end(recording, curve, step=0)


def after_event(recording: Recording, curve: str, within: int = 10) -> float:
    """Mean of a curve in the steps after the first change while training, minus that before it.

    Args:
        recording: of a run with an event.
        curve: which.
        within: how many steps before and after.
    """
    begins = recording.config.events[0].step
    curves = recording.curves()
    step, values = curves["step"], curves[curve]
    before = values[(step < begins) & (step >= begins - within)]
    after = values[(step >= begins) & (step < begins + within)]
    return float(np.nanmean(after) - np.nanmean(before))


def late(recording: Recording, curve: str, share: float = 0.5) -> float:
    """Mean of a curve over the last part of the steps."""
    curves = recording.curves()
    return float(np.nanmean(curves[curve][curves["step"] >= (1 - share) * recording.config.steps]))


def pairs_between(recording: Recording, side: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Share of the probe's positive or negative pairs with a distance (or similarity) between two values.

    A bin counts by its middle.
    """
    middles, counts = bins(recording.frames[-1], side)
    inside = (middles >= low) & (middles < high)
    return float(counts[inside].sum() / max(counts.sum(), 1))


def bins(frame: Frame, side: str) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Middles and counts of a frame's histogram."""
    histogram = frame.histogram
    counts: NDArray[np.int64] = getattr(histogram, side).astype(np.int64)
    edges = np.linspace(histogram.low, histogram.high, len(counts) + 1)
    return (edges[1:] + edges[:-1]) / 2, counts


def embeddings(frame: Frame) -> NDArray[np.float64]:
    """What the encoder gave: the map itself where there are two coordinates."""
    kept = frame.embeddings
    whole = kept if kept is not None and kept.shape[1] != 2 else frame.positions
    return whole.astype(np.float64)


def same_neighbour(recording: Recording) -> float:
    """Share of probe samples whose nearest neighbour is the same by Euclidean distance and by cosine."""
    points = embeddings(recording.frames[-1])
    unit = directions(points)
    squares = (points**2).sum(axis=1)
    far = squares[:, None] + squares - 2 * points @ points.T
    close = unit @ unit.T
    np.fill_diagonal(far, np.inf)
    np.fill_diagonal(close, -np.inf)
    return float((far.argmin(axis=1) == close.argmax(axis=1)).mean())


def directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row divided by its length; a zero row stays."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    unit: NDArray[np.float64] = points / np.where(lengths > 0, lengths, 1.0)
    return unit


def mean_norm(recording: Recording, step: int | None = None) -> float:
    """Mean length of the probe's embeddings at the end, or at a step."""
    frame = recording.frames[-1] if step is None else recording.at(step)
    return float(np.linalg.norm(embeddings(frame), axis=1).mean())


def negatives_seen(recording: Recording, floor: float = 0.01) -> float:
    """Mean share of a probe sample's negatives that weigh more than `floor` times its heaviest one.

    A softmax loss weighs a negative of cosine similarity s by exp(s / tau), with the temperature in force.
    """
    frame = recording.frames[-1]
    tau = next(mark.value for mark in frame.marks if mark.kind == "temperature")
    unit, shares = directions(embeddings(frame)), []
    for anchor, label in zip(unit, recording.labels, strict=True):
        close = unit[recording.labels != label] @ anchor
        shares.append(float((close > close.max() + tau * math.log(floor)).mean()))
    return float(np.mean(shares))


def positives_per_anchor(recording: Recording) -> float:
    """Mean number of positives that a row of the last batch has in it."""
    return float(recording.frames[-1].batch.positive.sum(axis=1).mean())


def threshold_gap(recording: Recording, share: float = 0.9) -> float:
    """How far apart the classes' own thresholds lie: largest minus smallest cosine similarity above which
    that share of a class's positive pairs lies."""
    unit = directions(embeddings(recording.frames[-1]))
    found = []
    for label in np.unique(recording.labels):
        mine = unit[recording.labels == label]
        if len(mine) > 1:
            first, second = np.triu_indices(len(mine), 1)
            found.append(float(np.quantile((mine @ mine.T)[first, second], 1 - share)))
    return max(found) - min(found) if found else math.nan


def chance(recording: Recording) -> float:
    """Recall@1 of embeddings that say nothing."""
    return recording.chance


MEASURES: dict[str, Measure] = {
    "end": end,
    "change": change,
    "after_event": after_event,
    "late": late,
    "pairs_between": pairs_between,
    "same_neighbour": same_neighbour,
    "mean_norm": mean_norm,
    "negatives_seen": negatives_seen,
    "positives_per_anchor": positives_per_anchor,
    "threshold_gap": threshold_gap,
    "chance": chance,
}
NEED_EMBEDDINGS = ("same_neighbour", "mean_norm", "negatives_seen", "threshold_gap")
BETWEEN: dict[str, Callable[[float, float], float]] = {
    "difference": lambda first, second: first - second,
    "ratio": lambda first, second: first / second if second else math.inf,
}
