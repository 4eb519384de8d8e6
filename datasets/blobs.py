"""Gaussian blobs: one round cloud a class, in as many dimensions as wanted."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, generated, points_option
from losslib.params import Integer, Param, positive

TITLE = "Blobs"
SUMMARY = "One round Gaussian cloud a class; overlap is set by the spread."
KIND = "points"
OPTIONS = {
    "classes": Param(
        6,
        valid=Integer(2, 40),
        explore=(2, 10),
        name="classes",
        meaning="number of classes",
        larger="makes room on the map scarcer",
    ),
    "features": Param(
        16,
        valid=Integer(2, 256),
        explore=(2, 64),
        name="features",
        meaning="number of input coordinates",
        larger="moves the clouds further apart",
    ),
    "spread": Param(
        0.6,
        valid=positive,
        explore=(0.1, 2.0),
        name="spread",
        meaning="standard deviation of a cloud; the centres have standard deviation 1",
        larger="makes classes overlap",
        step=0.1,
    ),
    "points": points_option(),
}


def load(seed: int, classes: int = 6, features: int = 16, spread: float = 0.6, points: int = 4000) -> Dataset:
    """Centres and points are normal; labels in order of class."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), class_sizes(points, classes))
    centres = rng.normal(size=(classes, features))
    inputs = centres[labels] + spread * rng.normal(size=(points, features))
    return generated("blobs", inputs, labels, tuple(f"blob {c}" for c in range(classes)), seed)
