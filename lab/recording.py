"""A `Recording`: the frames of a run within a fixed memory, dense early and sparse late."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.frame import Frame, identical

FRAME_BYTES = 6_000_000
EMBEDDING_BYTES = 3_000_000
_SPACING = ((10, 1), (40, 2), (100, 5), (200, 10), (5_000, 20), (20_000, 50))
_LAST_SPACING = 100
CURVES = (
    "loss",
    "active_share",
    "gradient_norm",
    "learning_rate",
    "recall_at_1",
    "map_at_r",
    "alignment",
    "uniformity",
    "spread",
    "effective_rank",
    "mean_cosine",
)


def is_frame_step(step: int) -> bool:
    """Whether a frame falls on that step: every step to 10, every 2nd to 40, every 5th to 100, and so on.

    A function of the step alone, so that a longer run begins with the frames of a shorter one. The last
    step of a run has a frame in any case.
    """
    spacing = next((every for limit, every in _SPACING if step <= limit), _LAST_SPACING)
    return step % spacing == 0


class Recording:
    """Frames in order of step, bounded in memory.

    When there is no room, the frame that is closest to its neighbours on a logarithmic scale of steps goes;
    the first and the newest stay. The curves keep every frame's numbers. What is kept depends on the frames
    alone, never on time.

    Args:
        config: the run's config, with the events so far.
        probe: data set indices of the map's points, (N,).
        labels: their classes, (N,).
        class_names: C names.
        frame_bytes: room for frames.
        embedding_bytes: room for embeddings.
    """

    def __init__(
        self,
        config: RunConfig,
        probe: NDArray[np.integer[Any]],
        labels: NDArray[np.integer[Any]],
        class_names: tuple[str, ...] = (),
        frame_bytes: int = FRAME_BYTES,
        embedding_bytes: int = EMBEDDING_BYTES,
    ) -> None:
        self.config = config
        self.probe = probe.astype(np.int32)
        self.labels = labels.astype(np.int32)
        self.class_names = class_names
        self.frames: list[Frame] = []
        self.state, self.reason = "", ""
        self.notes: tuple[str, ...] = ()
        self.provenance: dict[str, Any] = {}
        shares = np.bincount(self.labels) / max(len(self.labels), 1)
        self.chance = float((shares**2).sum())  # of recall@1, for positives of equal labels
        self._room = (frame_bytes, embedding_bytes)
        self._curves: dict[str, list[float]] = {name: [] for name in ("step", *CURVES)}

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""
        frames = self.frames
        return frames[-1] if frames else None

    def at(self, step: int) -> Frame:
        """The last frame at or before that step, else the first. Raises IndexError when there is none."""
        frames = self.frames
        place = bisect.bisect_right(frames, step, key=lambda frame: frame.step)
        return frames[max(place - 1, 0)]

    def add(self, frame: Frame) -> None:
        """Append a frame; its step must be above the newest one's."""
        frames = [*self.frames, frame]
        frames = _thinned(frames, self._room[0], lambda f: f.nbytes, None)
        frames = _thinned(
            frames,
            self._room[1],
            lambda f: f.embedding_bytes,
            lambda f: replace(f, embeddings=None),
        )
        if not frame.extra:
            values = {**vars(frame), **frame.quality, **frame.collapse}
            for name, curve in self._curves.items():
                value = values[name]
                curve.append(math.nan if value is None else value)
        self.frames = frames  # one assignment, last: a reader never meets a half-changed list

    def reopen(self, map_every: int, newest: int) -> int:
        """Undo what the newest frame has only because it was the last of its run; frames taken away, 0 or 1.

        Args:
            map_every: every how many frames MAP@R belongs to a frame.
            newest: how many frames were made before the newest.
        """
        frame = self.frames[-1]
        if frame.extra:
            return 0
        if is_frame_step(frame.step):
            if newest % map_every:
                quality = {**frame.quality, "map_at_r": None}
                self.frames = [*self.frames[:-1], replace(frame, quality=quality)]
                self._curves["map_at_r"][-1] = math.nan
            return 0
        self.frames = self.frames[:-1]
        for curve in self._curves.values():
            del curve[-1]
        return 1

    def curves(self) -> dict[str, NDArray[np.float64]]:
        """Step and every number of every regular frame ever added, (F,) each; NaN where it was left out."""
        count = min(len(curve) for curve in self._curves.values())  # a frame may be going in right now
        return {name: np.array(curve[:count], dtype=np.float64) for name, curve in self._curves.items()}

    def restore_curves(self, curves: dict[str, NDArray[np.float64]]) -> None:
        """Take over the numbers of a file, which may have more steps than frames."""
        self._curves = {name: curves[name].tolist() for name in self._curves}

    def equals(self, other: Recording) -> bool:
        """Whether both hold the same regular frames and curves, bit for bit."""
        mine, theirs = self.curves(), other.curves()
        same_curves = all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine)
        regular = [[frame for frame in r.frames if not frame.extra] for r in (self, other)]
        return same_curves and identical(*regular)

    def save(self, path: str | Path | BinaryIO) -> None:
        """Write a run file: arrays and JSON, no pickle; see `lab.runfile`."""
        from lab.runfile import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path | BinaryIO) -> Recording:
        """Read a run file; `notes` says what differs from the place where it was made.

        Raises:
            ParameterError: not a run file, or one of another version.
        """
        from lab.runfile import load

        return load(path)


def stripped(
    frames: Sequence[Frame], room: int, size: Callable[[Frame], int], strip: Callable[[Frame], Frame]
) -> list[Frame]:
    """All frames, with as many of them stripped as makes the rest fit in a room; the first and the last stay.

    Args:
        frames: in order of step.
        room: in bytes.
        size: of what may be taken away from a frame.
        strip: takes it away.
    """
    return _thinned(list(frames), room, size, strip)


def _thinned(
    frames: list[Frame],
    room: int,
    size: Callable[[Frame], int],
    strip: Callable[[Frame], Frame] | None,
) -> list[Frame]:
    """The frames with as many stripped (or dropped) as makes the rest fit."""
    sizes = [size(frame) for frame in frames]
    while sum(sizes) > room:
        held = [i for i, nbytes in enumerate(sizes) if nbytes]
        if len(held) < 3:
            break  # the first and the newest stay whatever they take
        scale = np.log(np.array([frames[i].step for i in held]) + 30.0)
        closest = held[int(np.argmin(scale[2:] - scale[:-2])) + 1]
        if strip is None:
            del frames[closest], sizes[closest]
        else:
            frames[closest], sizes[closest] = strip(frames[closest]), 0
    return frames
