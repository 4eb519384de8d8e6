"""A loss's value and gradient while one pair slides, computed alike for every registered loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from lab.anatomy.batch import Batch, Rug, pairs_rug, proxies_rug
from lab.anatomy.closing import Floats, closed_in
from lab.anatomy.slides import NOTHING, SIDES, EntrySlide, RowSlide, ways
from lab.anatomy.subject import Subject, measure
from losslib.proxies import ProxyLoss
from losslib.types import Mark

POINTS = 61
EDGE = 0.02  # radians kept from both ends, where no direction leads nearer or farther
HELD = tuple(math.radians(a + b) for a in (45, 60, 75, 90) for b in (-2, -0.5, 0.5, 2))  # ranks change there
GRID = np.array(sorted({*np.linspace(EDGE, math.pi - EDGE, POINTS).tolist(), *HELD}))
NARROW = 0.02  # share of the axis under which a gradient only passes through 0
QUIET = 0.01  # share of its steepest gradient under which a softmax kind counts as resting

JUMP = 0.02  # share of the value's range
MOST_JUMPS = 8

Slide = RowSlide | EntrySlide


@dataclass(frozen=True)
class Curve:
    """One sliding pair.

    Attributes:
        side: "positive" or "negative".
        at: (G,) distances or similarities of the pair, ascending.
        value: (G,) the loss.
        slope: (G,) the gradient that training sees, by the pair's distance or similarity.
        dead: ranges of `at` in which there is no gradient (hinges), or less than 1 % of the steepest.
        start: where the pair truly stands in its batch; None in a made scene.
        jumps: where the value jumps, which no gradient sees.
    """

    side: str
    at: NDArray[np.float64]
    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    dead: tuple[tuple[float, float], ...]
    start: float | None = None
    jumps: tuple[float, ...] = ()


@dataclass(frozen=True)
class LossCurves:
    """What a loss does to one sliding pair.

    Attributes:
        axis: the distance in words.
        inverted: whether larger is closer.
        curves: for positives and negatives; empty where there is no such curve.
        held: a sentence on what slides and what is held, or on why there is no curve.
        hinge: whether a dead zone has no gradient at all, not just under 1 % of the steepest.
        marks: thresholds of the loss on that axis.
        rug: distances of a batch, to see where its pairs stand.
    """

    axis: str
    inverted: bool
    curves: tuple[Curve, ...]
    held: str
    hinge: bool
    marks: tuple[Mark, ...] = ()
    rug: Rug | None = None


@cache
def loss_curves(name: str) -> LossCurves:
    """The curves of the loss of that name with its default options. Raises ParameterError for no loss."""
    return curves_of(Subject(name))[0]


@lru_cache(maxsize=32)
def curves_of(
    subject: Subject, batch: Batch | None = None, rug_of: Batch | None = None
) -> tuple[LossCurves, Slide | None]:
    """The curves of a loss as it is set, and the slide that shows them (None without curves).

    Args:
        subject: the loss with its options, distance and reducer.
        batch: the batch in which a pair slides; without one it slides among a few pairs.
        rug_of: the batch whose distances are shown beside the curves.

    Raises:
        ValueError, TypeError: the loss refuses its options or parts.
    """
    loss = subject.built()
    distance = measure(loss)
    found: tuple[Curve, ...] = ()
    chosen: Slide | None = None
    moved = 0
    for way in ways(subject.cls, batch):
        try:
            curves = tuple(slide(subject, way.slide, side) for side in SIDES)
        except (ValueError, TypeError):
            continue  # this loss refuses such a batch
        moving = sum(bool(np.nanmax(np.abs(curve.slope), initial=0) > way.least) for curve in curves)
        if moving > moved:
            found, chosen, moved = curves, way.slide, moving
        if moved == len(curves):
            break
    marks = tuple(mark for mark in loss.marks() if mark.kind == "line")
    held = chosen.held if chosen else why_not(subject)
    rug = None
    if rug_of is not None:
        rug = (proxies_rug if isinstance(loss, ProxyLoss) else pairs_rug)(rug_of, distance)
    hinge = loss.activity_rule == "hinge"
    return LossCurves(distance.title, distance.is_inverted, found, held, hinge, marks, rug), chosen


def why_not(subject: Subject) -> str:
    """Why there is no curve, in a sentence."""
    reason = subject.built().not_by_anchor(False) or "no pair that slides changes it"
    return f"There is no curve of one pair for the {subject.cls.title} loss: {reason}."


def slide(subject: Subject, along: Slide, side: str) -> Curve:
    """The curve of one side, by automatic differentiation along the way."""

    def look(angles: Floats) -> Floats:
        return np.stack(along.along(subject, side, angles))

    def turn(steps: Floats) -> NDArray[np.intp]:
        quiet = np.abs(steps[2]) <= least
        return (quiet != quiet[0]).argmax(0) - 1

    found = look(GRID)
    least = NOTHING
    if subject.built().activity_rule != "hinge":
        least = max(QUIET * np.nanmax(np.abs(found[2]), initial=0), NOTHING)
    quiet = np.abs(found[2]) <= least
    ends = closed_in(look, GRID, found, np.flatnonzero(quiet[1:] != quiet[:-1]), turn)
    rough = closed_in(look, GRID, found, rough_steps(found), steepest)
    fallen = np.abs(rough.high[1] - rough.low[1]) > JUMP * np.ptp(found[1])
    jumps = tuple(sorted({round(float(x), 4) for x in rough.low[0][fallen]}))
    found = np.concatenate([found, ends.tried, rough.tried], 1)
    at, value, slope = found[:, np.argsort(found[0], kind="stable")]
    zones = dead_zones(at, np.abs(slope) <= least)
    return Curve(side, at, value, slope, zones, along.start(subject, side), jumps)


def steepest(steps: Floats) -> NDArray[np.intp]:
    """The part of each divided step in which the value changes most."""
    return np.abs(np.diff(steps[1], axis=0)).argmax(0)


def rough_steps(found: Floats) -> NDArray[np.intp]:
    """Steps of the grid on which the value changes by other than its gradient says: it may jump there."""
    at, value, slope = found
    unexplained = np.abs(np.diff(value) - (slope[1:] + slope[:-1]) / 2 * np.diff(at))
    order = np.argsort(-unexplained)[:MOST_JUMPS]
    return np.sort(order[unexplained[order] > JUMP * np.ptp(value) + NOTHING])


def dead_zones(at: NDArray[np.float64], resting: NDArray[np.bool_]) -> tuple[tuple[float, float], ...]:
    """The ranges in which the gradient rests, not just changes its sign."""
    width = NARROW * (at[-1] - at[0])
    padded = np.concatenate([[False], resting, [False]])
    turns = np.flatnonzero(padded[1:] != padded[:-1])
    ends = zip(turns[::2], turns[1::2] - 1, strict=True)
    return tuple((float(at[start]), float(at[end])) for start, end in ends if at[end] - at[start] > width)


def sentences(curves: LossCurves) -> tuple[str, ...]:
    """The picture in words: which way is closer, and where each side rests."""
    if not curves.curves:
        return (curves.held,)
    pull, closer = ("below", "larger") if curves.inverted else ("above", "smaller")
    return (
        curves.held,
        f"{curves.axis}: {closer} is closer, and a gradient {pull} 0 pulls the pair together.",
        *(rest_of(curve, curves.hinge) for curve in curves.curves),
    )


def rest_of(curve: Curve, hinge: bool) -> str:
    """Where one side rests, in a sentence."""
    what = "no gradient" if hinge else "less than 1 % of the steepest gradient"
    low, high = curve.at[0], curve.at[-1]
    zones = []
    for start, end in curve.dead:
        first, last = (f"{round(value, 2) + 0.0:g}" for value in (start, end))
        if start == low and end == high:
            zones.append("anywhere")
        elif start == low:
            zones.append(f"below {last}")
        else:
            zones.append(f"above {first}" if end == high else f"from {first} to {last}")
    if not zones:
        return f"A {curve.side} pair has gradient everywhere on it."
    return f"A {curve.side} pair has {what} {' and '.join(zones)}."
