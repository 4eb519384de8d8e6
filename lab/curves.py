"""A loss's value and gradient while one pair slides, computed alike for every registered loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.scenes import AXES, Scene, built, scenes_of
from losslib import catalog
from losslib.distances import Distance, LpDistance
from losslib.types import Mark

POINTS = 61
EDGE = 0.02  # radians kept from both ends, where no direction leads nearer or farther
HELD = tuple(math.radians(a + b) for a in (45, 60, 75, 90) for b in (-2, -0.5, 0.5, 2))  # ranks change there
NARROW = 0.02  # share of the axis under which a gradient only passes through 0
QUIET = 0.01  # share of its steepest gradient under which a softmax kind counts as resting
NOTHING = 1e-9  # gradients under it are rounding
FLAT = 0.01  # a scene in which no gradient exceeds this shows nothing of the loss
HALVINGS = 12

Row = tuple[float, float, float, float]  # angle, distance, loss, gradient


@dataclass(frozen=True)
class Curve:
    """One sliding pair.

    Attributes:
        side: "positive" or "negative".
        at: (G,) distances or similarities of the pair, ascending.
        value: (G,) the loss.
        slope: (G,) the gradient that training sees, by the pair's distance or similarity.
        dead: ranges of `at` in which there is no gradient (hinges), or less than 1 % of the steepest.
    """

    side: str
    at: NDArray[np.float64]
    value: NDArray[np.float64]
    slope: NDArray[np.float64]
    dead: tuple[tuple[float, float], ...]


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
    """

    axis: str
    inverted: bool
    curves: tuple[Curve, ...]
    held: str
    hinge: bool
    marks: tuple[Mark, ...] = ()


@cache
def loss_curves(name: str) -> LossCurves:
    """The curves of the loss of that name with its default options. Raises ParameterError for no loss."""
    cls = catalog.get(name)
    loss = built(cls)
    distance = loss.distance if "distance" in loss.parts else LpDistance()
    found: tuple[Curve, ...] = ()
    held = why_not(loss)
    moved = 0
    for scene in scenes_of(cls):
        try:
            curves = tuple(slide(cls, distance, scene, side) for side in ("positive", "negative"))
        except (ValueError, TypeError):
            continue  # this loss refuses such a batch
        moving = sum(bool(np.abs(curve.slope).max() > FLAT) for curve in curves)
        if moving > moved:
            found, held, moved = curves, scene.held, moving
        if moved == len(curves):
            break
    marks = tuple(mark for mark in loss.marks() if mark.kind == "line")
    return LossCurves(distance.title, distance.is_inverted, found, held, cls.activity == "hinge", marks)


def why_not(loss: Any) -> str:
    """Why there is no curve, in a sentence."""
    reason = loss.not_by_anchor(False) or "it answers to no single pair"
    return f"There is no curve of one pair for {type(loss).__name__}: {reason}."


def slide(cls: type[Any], distance: Distance, scene: Scene, side: str) -> Curve:
    """The curve of one side, by automatic differentiation along the circle."""

    def sampled(angle: float) -> Row:
        return sample(built(cls), distance, scene, side, angle)  # anew each time: a loss may remember

    rows = [sampled(angle) for angle in sorted({*np.linspace(EDGE, math.pi - EDGE, POINTS).tolist(), *HELD})]
    steepest = max(abs(row[3]) for row in rows)
    least = NOTHING if cls.activity == "hinge" else max(QUIET * steepest, NOTHING)
    for near, far in list(pairwise(rows)):
        if (abs(near[3]) <= least) != (abs(far[3]) <= least):
            for _ in range(HALVINGS):  # the zone's end, to a thousandth of the grid
                middle = sampled((near[0] + far[0]) / 2)
                if (abs(middle[3]) <= least) == (abs(near[3]) <= least):
                    near = middle  # noqa: PLW2901
                else:
                    far = middle  # noqa: PLW2901
            rows += [near, far]
    table = np.array(sorted((row[1:] for row in set(rows)), key=lambda row: row[0]), dtype=np.float64)
    at, value, slope = table.T
    return Curve(side, at, value, slope, dead_zones(at, np.abs(slope) <= least))


def sample(loss: Any, distance: Distance, scene: Scene, side: str, angle: float) -> Row:
    """Angle, distance, loss, and its gradient by the distance."""
    x = (math.cos(angle) * AXES[:1] + math.sin(angle) * AXES[1:2]).requires_grad_()
    along = math.cos(angle) * AXES[1] - math.sin(angle) * AXES[0]
    at = distance.pairwise(AXES[:1], x).squeeze(0)
    value = scene.call(loss, x, side)
    pace = float(torch.autograd.grad(at, x)[0][0] @ along)
    (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    return angle, float(at.detach()), float(value.detach()), float(gradient[0] @ along) / pace


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
