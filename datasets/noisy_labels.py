"""Blobs of whose training labels some are wrong; the held-out ones are right."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, class_sizes, classes_option, points_option, scaled, split, spread_option
from losslib.params import Interval, Param

TITLE = "Noisy labels"
SUMMARY = (
    "Gaussian clouds, a share of whose training labels is wrong. Training sees the given labels; map and "
    "quality use the true ones."
)
KIND = "points"
OPTIONS = {
    "wrong": Param(
        0.2,
        valid=Interval(0.0, 1.0),
        explore=(0.0, 0.8),
        name="wrong",
        meaning="share of the training labels that are replaced by another class, drawn at random",
        larger="pulls more strangers together",
        step=0.05,
    ),
    "classes": classes_option(),
    "spread": spread_option(),
    "points": points_option(),
}
FEATURES = 16


def load(seed: int, wrong: float = 0.2, classes: int = 6, spread: float = 0.6, points: int = 4000) -> Dataset:
    """Exactly that share of the training labels is wrong, to the nearest whole number of points."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), class_sizes(points, classes))
    centres = rng.normal(size=(classes, FEATURES))
    inputs = centres[truth] + spread * rng.normal(size=(points, FEATURES))
    train, held_out = split(truth, 0.5, seed)
    mistaken = rng.permutation(train)[: round(wrong * len(train))]
    labels = truth.copy()
    labels[mistaken] = (truth[mistaken] + rng.integers(1, classes, len(mistaken))) % classes
    names = tuple(f"blob {c}" for c in range(classes))
    note = f"{len(mistaken)} of {len(train)} training labels are wrong; all held-out labels are right."
    return Dataset(
        "noisy_labels", scaled(inputs), labels, names, train, held_out, note=note, true_labels=truth
    )
