"""Positions of a map as whole numbers, and the way all frames of a run lie in a file. No torch.

On the unit circle a position is an angle, one of 16,384; elsewhere both coordinates lie on a grid of 12 bits
between the smallest and the largest of all: a fifth of a pixel on a map of 800. Positions are put there when
a frame is made, so that a file is exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

LEVELS = 4_095
TURN = 65_536  # angles are counted in this, in steps of `ANGLE`, so that differences wrap round by themselves
ANGLE = 4
ON_CIRCLE = 1e-4
FORMER_LEVELS = 65_535  # of files of formats 1 and 2


class Grid(NamedTuple):
    """One map.

    places: (N, 2) uint16; on the circle the angle and 0.
    low, high: the values of places 0 and `LEVELS`.
    circle: whether it is the unit circle.
    """

    places: NDArray[np.uint16]
    low: float
    high: float
    circle: bool = False


def snapped(positions: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """The positions where a file has them."""
    return restored(quantised(positions.astype(np.float32)))


def quantised(positions: NDArray[np.float32]) -> Grid:
    """A map (N, 2) on its grid."""
    low, high = (float(positions.min()), float(positions.max())) if positions.size else (0.0, 0.0)
    exact = positions.astype(np.float64)
    if positions.size and np.abs(np.hypot(exact[:, 0], exact[:, 1]) - 1).max() < ON_CIRCLE:
        turns = np.arctan2(exact[:, 1], exact[:, 0]) / (2 * np.pi)
        angles = np.rint(turns * (TURN // ANGLE)).astype(np.int64) * ANGLE % TURN
        return Grid(np.stack([angles, np.zeros_like(angles)], axis=1).astype(np.uint16), low, high, True)
    scale = LEVELS / (high - low) if high > low else 0.0
    return Grid(np.rint((exact - low) * scale).astype(np.uint16), low, high)


def restored(grid: Grid, levels: int = LEVELS) -> NDArray[np.float32]:
    """The positions that `quantised` described."""
    if grid.circle:
        angles = grid.places[:, 0].astype(np.float64) * (2 * np.pi / TURN)
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    step = (grid.high - grid.low) / levels
    return (grid.low + grid.places.astype(np.float64) * step).astype(np.float32)


def packed(maps: Sequence[NDArray[np.float32]]) -> dict[str, NDArray[Any]]:
    """The maps of all frames as arrays of a file: what changed from frame to frame, point by point.

    A change is counted 0, -1, 1, -2 and so on; high and low bytes lie apart, as the high ones are mostly 0.
    """
    grids = [quantised(positions) for positions in maps]
    places = np.stack([grid.places for grid in grids])
    changed = places.copy()
    changed[1:] -= places[:-1]  # modulo 65,536
    signed = np.ascontiguousarray(changed.transpose(1, 2, 0)).view(np.int16)
    counted = ((signed << 1) ^ (signed >> 15)).view(np.uint16)
    return {
        "paths": np.stack([counted >> 8, counted & 255]).astype(np.uint8),
        "extent": np.array([[grid.low, grid.high] for grid in grids]),
        "circle": np.array([grid.circle for grid in grids]),
    }


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[np.float32]]:
    """The maps of all frames of a file, of any format."""
    extent = [(float(low), float(high)) for low, high in arrays["extent"]]
    if "paths" not in arrays:
        former = _moved(arrays["moves"]) if "moves" in arrays else arrays["positions"]
        return [
            restored(Grid(places, *ends), FORMER_LEVELS) for places, ends in zip(former, extent, strict=True)
        ]
    places = np.cumsum(_changed(arrays["paths"]).transpose(2, 0, 1), axis=0, dtype=np.uint16)
    turns = arrays["circle"]
    return [
        restored(Grid(one, *ends, bool(circle)))
        for one, ends, circle in zip(places, extent, turns, strict=True)
    ]


def last_unpacked(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    """The map of the last frame alone, for a picture of it: (N, 2)."""
    if "paths" not in arrays:
        return unpacked(arrays)[-1]
    places: NDArray[np.uint16] = _changed(arrays["paths"]).sum(axis=2, dtype=np.uint16)
    low, high = arrays["extent"][-1]
    return restored(Grid(places, float(low), float(high), bool(arrays["circle"][-1])))


def _changed(paths: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """What `packed` counted: by how much each coordinate of each point changed in each frame, (N, 2, T)."""
    high, low = paths.astype(np.uint16)
    counted = high << 8 | low
    found: NDArray[np.uint16] = (counted >> 1) ^ (-(counted & 1).astype(np.int16)).view(np.uint16)
    return found


def _moved(changes: NDArray[np.uint8]) -> NDArray[np.uint16]:
    """Grid points of format 2, which held changes modulo 65,536, high and low bytes apart."""
    high, low = changes.astype(np.uint16)
    found: NDArray[np.uint16] = np.cumsum(high << 8 | low, axis=0, dtype=np.uint16)
    return found
