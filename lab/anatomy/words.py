"""What the anatomy's figures say, in sentences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lab.anatomy.family import Family, short
from lab.anatomy.portrait import Portrait
from lab.anatomy.slides import Along
from lab.anatomy.subject import DEFAULT, DISTANCES, Subject, measure
from lab.curves import Curve, LossCurves, rest_of

STRAIGHT = 0.3  # share of a curve from which on its steepest gradient is no single place


def number(value: float) -> str:
    """To four digits, without a minus before 0."""
    return f"{round(value, 4) + 0.0:.4g}" if abs(value) < 1e4 else f"{value:.3g}"


def headline(inverted: bool) -> str:
    """Which way is closer."""
    return "Similarity: larger is closer" if inverted else "Distance: smaller is closer"


def direction(loss: Any) -> str:
    """What the ends of the axis are, and what goes wrong when it is taken the other way round."""
    distance = measure(loss)
    low, high = distance.bounds()
    near, far = (high, low) if distance.is_inverted else (low, high)
    ends = [
        f"{number(value)} is {what}"
        for value, what in ((near, "as near as two embeddings can be"), (far, "as far apart as they can be"))
        if math.isfinite(value)
    ]
    own = (
        ""
        if "distance" in loss.parts
        else "This loss takes no distance; its curves stand over the Euclidean one. "
    )
    said = own + (f"{distance.title}: {', '.join(ends)}. " if ends else f"{distance.title} has no ends. ")
    other, more = ("distance", "smaller") if distance.is_inverted else ("similarity", "larger")
    return said + (
        f"Conversely, a {other} is {more} for closer pairs: take one for the other and every force turns "
        "round, so that positives are pushed apart and negatives pulled together."
    )


def turned_round(subject: Subject) -> str:
    """A warning where the chosen distance goes the other way than the loss's own; else ""."""
    if subject.distance == DEFAULT:
        return ""
    own, chosen = subject.cls.default_distance(), DISTANCES[subject.distance]()
    if own.is_inverted == chosen.is_inverted:
        return ""
    return (
        f"The options of the {subject.cls.title} loss are declared for {_small(own.title)}, where "
        f"{'larger' if own.is_inverted else 'smaller'} is closer. With {_small(chosen.title)} "
        f"{'larger' if chosen.is_inverted else 'smaller'} is closer, so margins and thresholds have to be "
        "chosen anew."
    )


def values_in_force(subject: Subject) -> str:
    """Every option with its symbol and value, each a formula of its own; "" without options."""
    parts = []
    for name, param in subject.cls.params.items():
        value = subject.value(name)
        symbol = param.symbol or rf"\text{{{param.title.lower()}}}"
        text = short(param, value)
        told = text if isinstance(value, int | float) and not isinstance(value, bool) else rf"\text{{{text}}}"
        unit = rf"\,\text{{{param.unit}}}" if param.unit else ""
        parts.append(f"${symbol} = {told}{unit}$")
    return "&emsp; ".join(parts)


def pair_there(side: str, found: Along, inverted: bool, kind: str) -> str:
    """Value and gradient of the sliding pair at one place."""
    at, value, slope = (float(column[0]) for column in found)
    return (
        f"**{side.capitalize()} pair** at {kind} {number(at)}: loss {number(value)}, "
        f"gradient {number(slope)} ({pull(slope, inverted)})."
    )


def pull(slope: float, inverted: bool) -> str:
    """What a gradient does to the pair."""
    if not math.isfinite(slope):
        return "not a finite number"
    toward = -slope if inverted else slope
    return "no force" if abs(slope) < 1e-9 else "pulled together" if toward > 0 else "pushed apart"


def course(curve: Curve, curves: LossCurves) -> str:
    """What rises, what falls and where it rests, of one side."""
    at, slope = curve.at, curve.slope
    finite = np.isfinite(curve.value) & np.isfinite(slope)
    if not finite.all():
        rest = "; what is drawn is the rest" if finite.any() else ""
        return f"A {curve.side} pair has values that are not finite numbers under these options{rest}."
    toward = -slope if curves.inverted else slope
    steepest = float(np.abs(slope).max())
    pulled, pushed = (bool((part > 1e-3 * steepest).any()) for part in (toward, -toward))
    if steepest < 1e-9:
        return f"A {curve.side} pair has no gradient anywhere."
    place = where(float(at[np.abs(slope).argmax()]), curve, curves.inverted)
    if (np.abs(slope) > 0.99 * steepest).mean() > STRAIGHT:
        place = "over a whole range"
    if pulled and pushed:
        lowest = where(float(at[curve.value.argmin()]), curve, curves.inverted)
        said = f"A {curve.side} pair is pulled in one part of the range and pushed in another; its loss is "
        said += f"lowest {lowest}"
    else:
        said = f"A {curve.side} pair is {'pulled together' if pulled else 'pushed apart'}: its loss "
        said += "falls as it comes closer" if pulled else "falls as it moves apart"
    said += f", with the steepest gradient, {number(steepest)}, {place}."
    if curve.jumps:
        listed = " and ".join(
            filter(None, [", ".join(map(number, curve.jumps[:-1])), number(curve.jumps[-1])])
        )
        said += f" Its value jumps at {listed}, which no gradient sees."
    return f"{said} {rest_of(curve, curves.hinge)}" if curve.dead else said


def where(at: float, curve: Curve, inverted: bool) -> str:
    """A place of the axis in words."""
    low, high = curve.at[[0, -1]]
    edge = 0.01 * (high - low)
    if at - low <= edge or high - at <= edge:
        return "at the nearest" if (at - low <= edge) != inverted else "at the farthest"
    return f"at {number(at)}"


def what_the_curves_say(subject: Subject, curves: LossCurves) -> tuple[str, ...]:
    """What slides, and both sides' courses."""
    if not curves.curves:
        return (curves.held,)
    said = [curves.held, *(course(curve, curves) for curve in curves.curves)]
    if any(curve.start is not None for curve in curves.curves):
        said.append("A cross on a curve marks where that pair stands in the batch.")
    if subject.cls.stop_gradient:
        said.append(f"The gradient is not the slope of the value: {subject.cls.stop_gradient}.")
    if curves.rug is not None:
        said.append(curves.rug.said)
    return tuple(said)


def what_the_family_says(family: Family) -> tuple[str, ...]:
    """What a larger value does, as declared and as computed."""
    param, members = family.param, family.members
    said = [f"{param.meaning[:1].upper()}{param.meaning[1:]}." if param.meaning else ""]
    if param.larger:
        said.append(f"A larger value: {param.larger}." if param.kind != "bool" else f"True: {param.larger}.")
    if len(members) > 1:
        for side in members[0].sides:
            low, high = (_steepest(member.sides[side].slope) for member in (members[0], members[-1]))
            said.append(
                f"From {members[0].text} to {members[-1].text} the steepest gradient of a {side} pair "
                f"{_change(low, high)}."
            )
    return (*filter(None, said), *family.refused)


def _steepest(slope: Any) -> float:
    found = np.abs(slope[np.isfinite(slope)])
    return float(found.max()) if len(found) else math.nan


def _change(low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return "is not a finite number at one end"
    if abs(high - low) <= 0.005 * max(low, high, 1e-12):
        return f"stays at {number(low)}"
    return f"{'rises' if high > low else 'falls'} from {number(low)} to {number(high)}"


def what_the_portrait_says(found: Portrait) -> tuple[str, ...]:
    """What is held, where the loss is lowest, and where nothing pulls."""
    finite = np.isfinite(found.value)
    said = [found.said]
    if not finite.all():
        said.append(f"The loss is not a finite number on {(~finite).mean() * 100:.0f} % of the plane shown.")
    if finite.any():
        row, column = np.unravel_index(np.nanargmin(np.where(finite, found.value, np.nan)), found.value.shape)
        said.append(
            f"Arrows are the force on the free point, minus the gradient; the loss is lowest, "
            f"{number(float(found.value[row, column]))}, near ({number(float(found.axis[column]))}, "
            f"{number(float(found.axis[row]))}) and at most {number(float(found.value[finite].max()))}."
        )
    share = float(found.still.mean())
    said.append(
        f"Nothing pulls on {share * 100:.0f} % of the plane (dots)."
        if share > 0.01
        else "Something pulls nearly everywhere."
    )
    if len(found.circle):
        said.append(
            "Only the direction from the origin counts for this distance, so the forces run round the circle "
            "and weaken outwards; the bold arrows are those on the unit circle."
        )
    return tuple(said)


def _small(title: str) -> str:
    return title if title.startswith(NAMED) else title[:1].lower() + title[1:]


NAMED = ("Euclidean", "Manhattan", "Chebyshev", "L")  # after people, or a letter of its own
