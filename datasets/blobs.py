"""Gaussian blobs: one round cloud a class, in as many dimensions as wanted."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, classes_option, generated, points_option, spread_option
from losslib.params import Integer, Param

TITLE = "Blobs"
SUMMARY = "One round Gaussian cloud a class; overlap is set by the spread."
KIND = "points"
OPTIONS = {
    "classes": classes_option(),
    "features": Param(
        16,
        valid=Integer(2, 256),
        explore=(2, 64),
        name="features",
        meaning="number of input coordinates",
        larger="moves the clouds further apart",
    ),
    "spread": spread_option(),
    "points": points_option(),
}


def load(seed: int, classes: int = 6, features: int = 16, spread: float = 0.6, points: int = 4000) -> Dataset:
    """Centres and points are normal; labels in order of class."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), class_sizes(points, classes))
    centres = rng.normal(size=(classes, features))
    inputs = centres[labels] + spread * rng.normal(size=(points, features))
    return generated("blobs", inputs, labels, tuple(f"blob {c}" for c in range(classes)), seed)
