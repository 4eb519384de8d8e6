"""How frames hold their arrays: in less memory than they are shown in, and exactly the same. No torch.

A class has thousands of frames in memory. A map lies on the grid of `lab.grid`, which takes half or a quarter
of the bytes; embeddings of two numbers are those of the map; most weights of a batch are equal.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lab.grid import Grid, quantised, restored

Kind = TypeVar("Kind", bound=type)

LARGEST = 65_536  # weights beyond that many are held as they are: packing would take milliseconds


class Held:
    """A field of a dataclass whose value is packed when it is set and unpacked when it is asked for.

    What is unpacked is a new array each time, equal bit for bit to the one that was set.
    """

    slot = ""

    def __get__(self, frame: Any, owner: type | None = None) -> Any:
        return self if frame is None else self.unpacked(frame, frame.__dict__[self.slot])

    def __set__(self, frame: Any, value: Any) -> None:
        frame.__dict__[self.slot] = self.packed(frame, value)

    def packed(self, frame: Any, value: Any) -> Any:
        """What is kept in place of the value."""
        raise NotImplementedError

    def unpacked(self, frame: Any, kept: Any) -> Any:
        """The value."""
        raise NotImplementedError


class HeldMap(Held):
    """Positions (N, 2) float32, as places on their grid where they lie on it."""

    def packed(self, frame: Any, value: Any) -> Any:
        """The grid; the positions themselves where they lie on none."""
        if len(value) == 0 or value.dtype != np.float32 or value.ndim != 2 or value.shape[1] != 2:
            return value
        with np.errstate(invalid="ignore"):
            grid = quantised(value) if np.isfinite(value).all() else None
            if grid is None or not same(restored(grid), value):
                return value
        places = grid.places[:, :1] if grid.circle else grid.places
        return grid._replace(places=places.copy())

    def unpacked(self, frame: Any, kept: Any) -> Any:
        """The positions."""
        return restored(kept) if isinstance(kept, Grid) else kept


class HeldEmbeddings(Held):
    """Embeddings (N, D) float16, or None; nothing is kept of those that are the map's positions."""

    OF_THE_MAP = "of the map"

    def packed(self, frame: Any, value: Any) -> Any:
        """A word in place of the map's positions in half precision."""
        of_two = value is not None and value.ndim == 2 and value.shape[1] == 2
        return self.OF_THE_MAP if of_two and same(_halved(frame.positions), value) else value

    def unpacked(self, frame: Any, kept: Any) -> Any:
        """The embeddings, or None."""
        return _halved(frame.positions) if isinstance(kept, str) else kept


class HeldWeights(Held):
    """Weights (B, B) uint8 of a batch, most of which are equal or 0."""

    def packed(self, frame: Any, value: Any) -> Any:
        """Their shape and their bytes, deflated, where that takes at most half of the room."""
        if value.dtype != np.uint8 or value.size > LARGEST:
            return value
        text = zlib.compress(value.tobytes(), 1)
        return (value.shape, text) if 2 * len(text) <= value.nbytes else value

    def unpacked(self, frame: Any, kept: Any) -> Any:
        """The weights."""
        if not isinstance(kept, tuple):
            return kept
        shape, text = kept
        return np.frombuffer(zlib.decompress(text), np.uint8).reshape(shape).copy()


def holding(**fields: Held) -> Callable[[Kind], Kind]:
    """Decorates a dataclass, some of whose fields are held packed."""

    def hold(kind: Kind) -> Kind:
        for name, held in fields.items():
            held.slot = f"_{name}"
            setattr(kind, name, held)
        return kind

    return hold


def same(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Whether two arrays are equal bit for bit."""
    alike = first.dtype == second.dtype and first.shape == second.shape
    return alike and first.tobytes() == second.tobytes()


def _halved(positions: NDArray[np.float32]) -> NDArray[np.float16]:
    return positions.clip(-65_504, 65_504).astype(np.float16)
