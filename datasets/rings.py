"""Concentric rings."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, generated, points_option
from losslib.params import Integer, Param, non_negative

TITLE = "Rings"
SUMMARY = "Concentric rings, one a class: classes that surround each other."
KIND = "points"
OPTIONS = {
    "classes": Param(
        3,
        valid=Integer(2, 12),
        explore=(2, 6),
        name="classes",
        meaning="number of rings",
        larger="packs more rings around each other",
    ),
    "noise": Param(
        0.1,
        valid=non_negative,
        explore=(0.0, 0.5),
        name="noise",
        meaning="standard deviation of the noise; rings are 1 apart",
        larger="makes neighbouring rings overlap",
        step=0.01,
    ),
    "points": points_option(),
}


def load(seed: int, classes: int = 3, noise: float = 0.1, points: int = 4000) -> Dataset:
    """Ring c has radius c + 1."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), class_sizes(points, classes))
    angle = rng.uniform(0.0, 2.0 * np.pi, points)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inputs = (labels[:, None] + 1.0) * circle + noise * rng.normal(size=(points, 2))
    return generated("rings", inputs, labels, tuple(f"ring {c + 1}" for c in range(classes)), seed)
