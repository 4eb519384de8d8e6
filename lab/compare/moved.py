"""Who ended where: the samples that lie furthest apart between two aligned maps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.compare.alignment import radius


class Moved(NamedTuple):
    """One sample between two maps.

    Args:
        place: its number on the map.
        sample: its index in the data set.
        label: its class.
        distance: between its two places, in root mean square radii of the first map.
        neighbour_first: class of its nearest neighbour on the first map.
        neighbour_second: the same on the second.
    """

    place: int
    sample: int
    label: int
    distance: float
    neighbour_first: int
    neighbour_second: int


def displacement(first: NDArray[np.floating[Any]], second: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Distance between the two places of every sample, in root mean square radii of the first map, (N,)."""
    size = radius(first.astype(np.float64)) if len(first) else 0.0
    gaps: NDArray[np.float64] = np.sqrt(((first.astype(np.float64) - second) ** 2).sum(axis=1))
    return gaps / size if size > 0 else gaps


def moved(
    first: NDArray[np.floating[Any]],
    second: NDArray[np.floating[Any]],
    labels: NDArray[np.integer[Any]],
    samples: NDArray[np.integer[Any]],
    most: int = 12,
) -> tuple[Moved, ...]:
    """The samples that moved most, furthest first; equal distances in order of the map.

    Args:
        first: map of the first run, (N, 2).
        second: map of the second, aligned to the first, (N, 2).
        labels: (N,) classes.
        samples: (N,) data set indices.
        most: how many.
    """
    gaps = displacement(first, second)
    order = np.argsort(-gaps, kind="stable")[:most]
    return tuple(
        Moved(
            int(place),
            int(samples[place]),
            int(labels[place]),
            float(gaps[place]),
            *(neighbour(points, labels, int(place)) for points in (first, second)),
        )
        for place in order
    )


def neighbour(points: NDArray[np.floating[Any]], labels: NDArray[np.integer[Any]], place: int) -> int:
    """Class of the nearest other sample on the map; its own class where it is alone."""
    gaps = ((points.astype(np.float64) - points[place]) ** 2).sum(axis=1)
    gaps[place] = np.inf
    return int(labels[np.argmin(gaps)]) if len(points) > 1 else int(labels[place])
