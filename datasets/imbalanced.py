"""Blobs of very different sizes in training, and of equal sizes among the held-out points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datasets.base import Dataset, class_sizes, classes_option, points_option, scaled, spread_option
from losslib.params import Interval, Param

TITLE = "Imbalanced"
SUMMARY = (
    "Gaussian clouds, some of them rare in training. Held-out points have equally many of each, so that "
    "quality shows what became of the rare ones."
)
KIND = "points"
OPTIONS = {
    "classes": classes_option(10),
    "ratio": Param(
        50.0,
        valid=Interval(1.0, 1000.0),
        explore=(1.0, 200.0),
        name="ratio",
        meaning="size of the largest class in training over that of the smallest",
        larger="makes the rare classes rarer",
        step=1.0,
    ),
    "spread": spread_option(0.8),
    "points": points_option(),
}
FEATURES = 8
LEAST = 2  # samples of a class: fewer give no positive pair


def load(
    seed: int, classes: int = 6, ratio: float = 50.0, spread: float = 0.8, points: int = 4000
) -> Dataset:
    """Sizes of the training classes fall geometrically from the first class to the last."""
    rng = np.random.default_rng(seed)
    half = points // 2
    rare_to_common = falling_sizes(half, classes, ratio)
    labels = np.concatenate(
        [
            np.repeat(np.arange(classes), sizes)
            for sizes in (rare_to_common, class_sizes(points - half, classes))
        ]
    )
    centres = rng.normal(size=(classes, FEATURES))
    inputs = centres[labels] + spread * rng.normal(size=(points, FEATURES))
    train, held_out = rng.permutation(half), half + rng.permutation(points - half)
    names = tuple(f"blob {c}" for c in range(classes))
    return Dataset("imbalanced", scaled(inputs), labels, names, train, held_out)


def falling_sizes(total: int, classes: int, ratio: float) -> NDArray[np.int64]:
    """Sizes that add up to `total`, each the same factor below the one before, none below `LEAST`."""
    shares = ratio ** -np.linspace(0.0, 1.0, classes)
    spare = total - LEAST * classes
    wanted = np.maximum(total * shares / shares.sum() - LEAST, 0.0)
    sizes: NDArray[np.int64] = np.floor(spare * wanted / max(wanted.sum(), 1e-12)).astype(np.int64) + LEAST
    sizes[0] += total - sizes.sum()
    return sizes
