"""Thresholds of a loss as geometry around one anchor: circles on the plane, arcs where angles decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lab.playground.placement import CIRCLE, NAMES, Placement
from lab.playground.setup import sees_directions_only
from losslib.distances import DotProductSimilarity, LpDistance
from losslib.types import Mark


@dataclass(frozen=True)
class Ring:
    """One threshold around the anchor.

    Attributes:
        kind: "circle" (size is the radius) or "arc" (size is the angle to either side, in radians).
        size: of the ring.
        side: pairs that it concerns: "positive", "negative" or "both".
        label: what it marks.
        value: the threshold as the loss measures it.
    """

    kind: str
    size: float
    side: str
    label: str
    value: float


def rings(loss: Any, placement: Placement, anchor: int, space: str) -> tuple[Ring, ...]:
    """What can be drawn of the loss's thresholds around that anchor."""
    angular = space == CIRCLE or sees_directions_only(loss)
    found = []
    for mark in thresholds(loss, placement, anchor):
        size = (angle_of if angular else radius_of)(loss.distance, mark.value)
        if size is not None and 0 < size <= (math.pi if angular else math.inf):
            found.append(Ring("arc" if angular else "circle", size, mark.side, mark.label, mark.value))
    return tuple(found)


def thresholds(loss: Any, placement: Placement, anchor: int) -> list[Mark]:
    """The loss's lines; a gap becomes two, at the anchor's farthest positive and the margin beyond it."""
    found = []
    for mark in loss.marks():
        if mark.kind == "line":
            found.append(mark)
        elif mark.kind == "gap":
            far = farthest_positive(loss.distance, placement, anchor)
            if far is not None:
                beyond = far - mark.value if loss.distance.is_inverted else far + mark.value
                found.append(Mark("line", "positive", far, "", "farthest positive"))
                found.append(Mark("line", "negative", beyond, "", "negatives must be beyond it"))
    return found


def farthest_positive(distance: Any, placement: Placement, anchor: int) -> float | None:
    """Distance or similarity of the anchor's farthest positive."""
    embeddings, labels = placement.tensors()
    own = labels == labels[anchor]
    own[anchor] = False
    if not bool(own.any()):
        return None
    values = distance(embeddings[anchor : anchor + 1], embeddings[own])[0]
    return float(values.min() if distance.is_inverted else values.max())


def radius_of(distance: Any, value: float) -> float | None:
    """Radius of the points at that distance on the plane as it is."""
    if isinstance(distance, LpDistance) and distance.p == 2 and value > 0:
        return float(value ** (1 / distance.power))
    return None


def angle_of(distance: Any, value: float) -> float | None:
    """Angle between directions at that distance or similarity."""
    if isinstance(distance, DotProductSimilarity):
        return math.acos(value) if -1 <= value <= 1 else None
    chord = radius_of(distance, value)
    return None if chord is None or chord > 2 else 2 * math.asin(chord / 2)


def no_ring(loss: Any, placement: Placement, anchor: int) -> str:
    """Why no ring is drawn, in a sentence."""
    marks = loss.marks()
    if not marks:
        return "It has no margin to draw."
    if all(mark.kind == "temperature" for mark in marks):
        return "It has a temperature and no margin: nothing to draw as geometry."
    if (
        any(mark.kind == "gap" for mark in marks)
        and farthest_positive(loss.distance, placement, anchor) is None
    ):
        return f"{NAMES[anchor]} has no positive, so no margin around it to draw."
    return "Its margin has no place on this picture."
