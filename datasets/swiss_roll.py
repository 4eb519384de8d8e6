"""A rolled-up strip in space, with the position along it as a continuous label."""

from __future__ import annotations

import numpy as np

from datasets.base import Dataset, generated, points_option
from losslib.params import Integer, Param, non_negative, positive

TITLE = "Swiss roll"
SUMMARY = (
    "A strip rolled up in space. Its label is continuous: the position along the strip, from 0 at the inner "
    "end to 1 at the outer one; classes are equal pieces of it."
)
KIND = "points"
CONTINUOUS = "position along the roll (0 to 1)"
OPTIONS = {
    "bins": Param(
        8,
        valid=Integer(2, 12),
        explore=(2, 10),
        name="bins",
        meaning="number of equal pieces of the roll that are shown, and by label paired, as classes",
        larger="gives finer classes",
    ),
    "turns": Param(
        1.5,
        valid=positive,
        explore=(0.5, 3.0),
        name="turns",
        meaning="how often the strip is wound",
        larger="brings layers that are far apart along the strip close together in space",
        step=0.25,
    ),
    "noise": Param(
        0.1,
        valid=non_negative,
        explore=(0.0, 1.0),
        name="noise",
        meaning="standard deviation of the noise; layers are 6.3 apart",
        larger="thickens the strip until its layers touch",
        step=0.05,
    ),
    "points": points_option(),
}
_INNER = 1.5 * np.pi  # angle, and radius, of the inner end
_WIDTH = 21.0


def load(seed: int, bins: int = 8, turns: float = 1.5, noise: float = 0.1, points: int = 4000) -> Dataset:
    """An Archimedean spiral of radius equal to its angle, points spread evenly over its length and width."""
    rng = np.random.default_rng(seed)
    # evenly over the pieces, so that every one has points
    place = (np.arange(points) % bins + rng.random(points)) / bins
    angles = np.linspace(_INNER, _INNER + 2 * np.pi * turns, 4097)
    length = (angles * np.sqrt(1 + angles**2) + np.arcsinh(angles)) / 2
    angle = np.interp(length[0] + place * (length[-1] - length[0]), length, angles)
    height = _WIDTH * rng.random(points)
    roll = np.stack([angle * np.cos(angle), height, angle * np.sin(angle)], axis=1)
    inputs = roll + noise * rng.normal(size=(points, 3))
    labels = np.minimum((place * bins).astype(np.int64), bins - 1)
    names = tuple(f"{b / bins:.2g} to {(b + 1) / bins:.2g}" for b in range(bins))
    return generated("swiss_roll", inputs, labels, names, seed, place)
