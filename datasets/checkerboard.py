"""The squares of a board."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, generated, points_option
from losslib.params import Integer, Param, non_negative

TITLE = "Checkerboard"
SUMMARY = "Squares whose classes alternate: every class lies in many separate places."
KIND = "points"
OPTIONS = {
    "squares": Param(
        4,
        valid=Integer(2, 12),
        explore=(2, 8),
        name="squares",
        meaning="squares along each side of the board",
        larger="scatters each class over more places",
    ),
    "classes": Param(
        2,
        valid=Integer(2, 6),
        explore=(2, 4),
        name="classes",
        meaning="number of classes, which follow each other along rows and columns",
        larger="gives each class fewer squares",
    ),
    "noise": Param(
        0.0,
        valid=non_negative,
        explore=(0.0, 0.3),
        name="noise",
        meaning="standard deviation of the noise; squares are 1 wide",
        larger="blurs the borders",
        step=0.01,
    ),
    "points": points_option(),
}


def load(seed: int, squares: int = 4, classes: int = 2, noise: float = 0.0, points: int = 4000) -> Dataset:
    """The square in row i and column j has class (i + j) mod classes; the names end where the board does."""
    rng = np.random.default_rng(seed)
    classes = min(classes, 2 * squares - 1)  # as many as a board of that size has
    rows, columns = np.divmod(np.arange(squares**2), squares)
    square_class = (rows + columns) % classes
    labels = np.arange(points) % classes
    square = np.empty(points, np.int64)
    for label in range(classes):
        of_class = labels == label
        square[of_class] = rng.choice(np.flatnonzero(square_class == label), size=of_class.sum())
    corner = np.stack([columns[square], rows[square]], axis=1)
    inputs = corner + rng.random((points, 2)) + noise * rng.normal(size=(points, 2))
    names = tuple(f"colour {c + 1}" for c in range(classes))
    return generated("checkerboard", inputs, labels, names, seed)
