"""Two interleaved half circles."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, generated, points_option
from losslib.params import Param, non_negative

TITLE = "Moons"
SUMMARY = "Two interleaved half circles: not linearly separable, easy for an MLP."
KIND = "points"
OPTIONS = {
    "noise": Param(
        0.12,
        valid=non_negative,
        explore=(0.0, 0.5),
        name="noise",
        meaning="standard deviation of the noise; the radius is 1",
        larger="makes the moons touch",
        step=0.01,
    ),
    "points": points_option(),
}


def load(seed: int, noise: float = 0.12, points: int = 4000) -> Dataset:
    """The upper moon has centre (0, 0), the lower one (1, 0.5)."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(2), class_sizes(points, 2))
    angle = rng.uniform(0.0, np.pi, points)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1.0 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    inputs = np.where(labels[:, None] == 0, upper, lower) + noise * rng.normal(size=(points, 2))
    return generated("moons", inputs, labels, ("upper moon", "lower moon"), seed)
