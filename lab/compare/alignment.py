"""One map turned onto another, so that what remains between them is what the losses did."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig

Points = NDArray[np.float64]


def on_circle(config: RunConfig) -> bool:
    """Whether the map is the unit circle itself, which may be turned and mirrored but not moved or scaled."""
    return config.dim == 2 and config.output == "l2"


def aligned(
    reference: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]], turn_only: bool
) -> Points:
    """The other map laid on the reference (orthogonal Procrustes), (N, 2).

    Turned and mirrored so that the sum of squared distances between equal samples is least; before that
    moved to the same centre and scaled to the same root mean square radius, unless `turn_only`. A map that
    no turn brings nearer stays as it is, so equal maps have distance exactly 0.

    Args:
        reference: (N, 2).
        other: the same samples, (N, 2).
        turn_only: for maps on the unit circle.
    """
    fixed, moving = reference.astype(np.float64), other.astype(np.float64)
    if not len(fixed):
        return moving
    centre = np.zeros(2) if turn_only else fixed.mean(axis=0)
    mine = fixed - centre
    theirs = moving - (np.zeros(2) if turn_only else moving.mean(axis=0))
    if not turn_only and radius(theirs) > 1e-12 and radius(mine) > 1e-12:
        theirs = theirs * (radius(mine) / radius(theirs))
    left, _, right = np.linalg.svd(theirs.T @ mine)
    laid: Points = theirs @ (left @ right) + centre
    return moving if _apart(fixed, moving) <= _apart(fixed, laid) else laid


def radius(points: Points) -> float:
    """Root mean square distance from the centre."""
    return float(np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean()))


def _apart(first: Points, second: Points) -> float:
    return float(((first - second) ** 2).sum())
