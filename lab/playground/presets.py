"""Configurations worth starting from."""

from __future__ import annotations

from dataclasses import dataclass

from lab.playground.placement import Placement


@dataclass(frozen=True)
class Start:
    """A configuration with its name in a few words, and what to look for in it."""

    title: str
    look: str
    placement: Placement


def start(title: str, look: str, *rows: tuple[float, float, int]) -> Start:
    """From rows (x, y, class)."""
    return Start(title, look, Placement(tuple((x, y) for x, y, _ in rows), tuple(c for *_, c in rows)))


STARTS = (
    start(
        "Triplet",
        "An anchor A, its positive B, and a negative C that is a little further away.",
        (0.55, 0.75, 0),
        (-0.4, 0.95, 0),
        (0.95, -0.35, 1),
    ),
    start(
        "Hard negative",
        "The negative C lies closer to the anchor A than its positive B does.",
        (0.55, 0.75, 0),
        (-0.85, 0.4, 0),
        (0.95, 0.4, 1),
    ),
    start(
        "Easy negative",
        "The negative C is far beyond the margin; drag it in until it is pushed.",
        (0.3, 0.95, 0),
        (-0.1, 1.0, 0),
        (-0.2, -1.6, 1),
    ),
    start(
        "Collapsed",
        "All but together: distances say little, and losses rest at a constant or push very differently.",
        (0.7, 0.7, 0),
        (0.71, 0.7, 0),
        (0.7, 0.71, 1),
        (0.71, 0.71, 1),
    ),
    start(
        "Two clusters",
        "Two classes of three, apart: which losses are content, and which still move points?",
        (-0.95, 0.5, 0),
        (-0.8, 0.75, 0),
        (-1.1, 0.75, 0),
        (0.85, -0.4, 1),
        (1.05, -0.65, 1),
        (0.7, -0.7, 1),
    ),
    start(
        "Mixed classes",
        "Two classes taking turns on a ring: every point has a negative closer than its positives.",
        (1.0, 0.05, 0),
        (0.5, 0.87, 1),
        (-0.5, 0.87, 0),
        (-1.0, -0.05, 1),
        (-0.5, -0.87, 0),
        (0.5, -0.87, 1),
    ),
    start(
        "Outlier",
        "One point of the first class stands among the second: who pulls it, and how much?",
        (-0.9, 0.6, 0),
        (-0.7, 0.9, 0),
        (0.85, -0.55, 0),
        (0.9, -0.2, 1),
        (0.6, -0.8, 1),
    ),
    start(
        "Four classes of two",
        "Eight points: many negatives for each positive, as in a batch.",
        (0.95, 0.2, 0),
        (0.75, 0.6, 0),
        (-0.1, 1.0, 1),
        (-0.6, 0.8, 1),
        (-1.0, -0.1, 2),
        (-0.75, -0.65, 2),
        (0.15, -1.0, 3),
        (0.7, -0.7, 3),
    ),
)
