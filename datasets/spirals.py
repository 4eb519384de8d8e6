"""Interleaved spiral arms."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, generated, points_option
from losslib.params import Integer, Param, non_negative, positive

TITLE = "Spirals"
SUMMARY = "Spiral arms wound around each other: the hardest of the plane data sets."
KIND = "points"
OPTIONS = {
    "classes": Param(
        3,
        valid=Integer(2, 12),
        explore=(2, 6),
        name="classes",
        meaning="number of arms",
        larger="brings neighbouring arms closer",
    ),
    "turns": Param(
        1.0,
        valid=positive,
        explore=(0.25, 3.0),
        name="turns",
        meaning="how often an arm winds around the centre",
        larger="makes the arms harder to unwind",
        step=0.25,
    ),
    "noise": Param(
        0.02,
        valid=non_negative,
        explore=(0.0, 0.2),
        name="noise",
        meaning="standard deviation of the noise; arms are 1 long",
        larger="makes arms overlap",
        step=0.01,
    ),
    "points": points_option(),
}


def load(seed: int, classes: int = 3, turns: float = 1.0, noise: float = 0.02, points: int = 4000) -> Dataset:
    """Arm c starts at the angle 2 pi c / classes; points are spread evenly over its area."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), class_sizes(points, classes))
    radius = np.sqrt(rng.uniform(0.02, 1.0, points))
    angle = 2.0 * np.pi * (labels / classes + turns * radius)
    arms = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inputs = arms + noise * rng.normal(size=(points, 2))
    return generated("spirals", inputs, labels, tuple(f"arm {c + 1}" for c in range(classes)), seed)
