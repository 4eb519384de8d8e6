"""The picture in words: value, who pulls whom, and the thresholds around the selected point."""

from __future__ import annotations

import math

from lab.playground.evaluate import Evaluation, Pull
from lab.playground.geometry import Ring
from lab.playground.placement import NAMES
from lab.short import short

LISTED = 4


def headline(title: str, found: Evaluation) -> str:
    """The value, or why there is none."""
    if found.value is None:
        return f"{title} has no value here: {found.reason}."
    return f"{title} is {short(found.value)}."


def pairs_in_words(found: Evaluation) -> str:
    """How many pairs are active, and what the heaviest do."""
    total = found.positives + found.negatives
    if found.value is None:
        return ""
    if found.pulls is None:
        return "It has no pair weights, so no lines are drawn; the arrows are its gradient."
    if not found.pulls:
        missing = no_pairs(found)
        return f"No pair is active: nothing moves{missing}."
    said = "; ".join(in_words(pull) for pull in found.pulls[:LISTED])
    more = len(found.pulls) - LISTED
    rest = f"; and {more} lighter" if more > 0 else ""
    return f"{len(found.pulls)} of {total} pairs active: {said}{rest}."


def no_pairs(found: Evaluation) -> str:
    """What the classes lack."""
    if not found.positives:
        return ", there is no positive pair (give two points the same class)"
    return ", there is no negative pair (give a point another class)" if not found.negatives else ""


def in_words(pull: Pull) -> str:
    """One active pair."""
    kind = "positive" if pull.positive else "negative"
    how = "pull together" if pull.attracts else "push apart"
    first, second = NAMES[pull.first], NAMES[pull.second]
    return f"{first} and {second} ({kind}, at {short(pull.value)}) {how}, weight {short(abs(pull.weight))}"


def rings_in_words(rings: tuple[Ring, ...], anchor: int, otherwise: str) -> str:
    """What the circles or arcs around the anchor are."""
    if not rings:
        return otherwise
    return f"Around {NAMES[anchor]}: {'; '.join(ring_in_words(ring) for ring in rings)}."


def ring_in_words(ring: Ring) -> str:
    """One threshold."""
    place = (
        f"radius {short(ring.size)}"
        if ring.kind == "circle"
        else f"{round(math.degrees(ring.size))} degrees to either side ({short(ring.value)})"
    )
    return f"{ring.label} at {place}"
