"""One moment of a recording for figures: its embeddings, and how each point stands to its class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.frame import Frame
from lab.norms import normalised
from lab.projections import project
from lab.recording import Recording
from losslib import catalog

Points = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Moment:
    """What the figures of one frame are drawn from.

    Attributes:
        frame: the frame.
        recording: it is part of.
        embeddings: (N, D) as the encoder gave them; None where the recording had no room for them.
    """

    recording: Recording
    frame: Frame
    embeddings: NDArray[np.float32] | None

    @property
    def size(self) -> int:
        """Coordinates of an embedding."""
        return self.recording.config.dim

    @property
    def without_embeddings(self) -> str:
        """Why there are none, and where there are some; "" when there are."""
        if self.embeddings is not None:
            return ""
        held = [f.step for f in self.recording.frames if f.embeddings is not None]
        if not held:
            return "The recording kept no embeddings, only the map."
        nearest = min(held, key=lambda step: abs(step - self.frame.step))
        return (
            f"The recording had no room for the embeddings of step {self.frame.step}, only for its map; "
            f"the nearest step that has them is {nearest}."
        )

    @cached_property
    def unit(self) -> bool:
        """Whether the loss measures embeddings at length 1."""
        distance = catalog.get(self.recording.config.loss).default_distance()
        return bool(getattr(distance, "normalize_embeddings", True))

    @cached_property
    def measured(self) -> Points | None:
        """The embeddings as the loss's distance sees them, (N, D)."""
        if self.embeddings is None:
            return None
        return normalised(self.embeddings, "l2") if self.unit else self.embeddings.astype(np.float64)

    @cached_property
    def standing(self) -> Standing | None:
        """How every point stands to the class means."""
        return None if self.measured is None else stand(self.measured, self.recording.labels)

    def in_space(self) -> Points | None:
        """Positions in three dimensions, (N, 3), turned so that from above they look like the map."""
        if self.embeddings is None or self.size < 3:
            return None
        above = torch.from_numpy(np.pad(self.frame.positions, ((0, 0), (0, 1))))
        found: Points = project(torch.from_numpy(self.embeddings), above, size=3).numpy()
        return found


@dataclass(frozen=True, eq=False)
class Standing:
    """Distances of points to class means, Euclidean, (N,) each; `other` is the nearest other class.

    Where there is one class only, `other` is -1 and `to_other` infinite.
    """

    to_own: NDArray[np.float64]
    to_other: NDArray[np.float64]
    other: NDArray[np.int64]

    def of(self, rows: NDArray[np.integer[Any]]) -> Standing:
        """The same of some of the points."""
        return Standing(self.to_own[rows], self.to_other[rows], self.other[rows])

    @property
    def astray(self) -> NDArray[np.bool_]:
        """Points that are nearer to another class's mean than to their own, (N,)."""
        return self.to_other < self.to_own


def moment(recording: Recording, step: int | None = None) -> Moment | None:
    """The frame at (or last before) a step, the newest when None; None when there is no frame."""
    frame = recording.latest if step is None or not recording.frames else recording.at(step)
    if frame is None:
        return None
    stored = frame.positions if recording.config.dim == 2 else frame.embeddings
    return Moment(recording, frame, None if stored is None else stored.astype(np.float32))


def stand(embeddings: Points, classes: NDArray[np.integer[Any]]) -> Standing:
    """Distances to the mean of the own class and to the nearest other class's mean."""
    present, group = np.unique(classes, return_inverse=True)
    wide = embeddings.astype(np.float64)
    means = np.stack([wide[group == c].mean(axis=0) for c in range(len(present))])
    distances = np.linalg.norm(wide[:, None] - means, axis=2)
    rows = np.arange(len(wide))
    own = distances[rows, group].copy()
    distances[rows, group] = np.inf
    nearest = distances.argmin(axis=1)
    other = np.where(np.isfinite(distances[rows, nearest]), present[nearest], -1)
    return Standing(own, distances[rows, nearest], other.astype(np.int64))
