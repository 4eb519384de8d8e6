"""The fixed points that every frame shows: map, distance histograms, quality."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from datasets import Dataset
from lab.frame import Frame, Glance, Histogram, snapped
from lab.metrics import as_measured, collapse, quality
from lab.projections import project

MAX_POINTS = 5_000
MAX_PAIRS = 25_000
MIN_PAIRS = 3_000
PAIR_ENTRIES = 200_000  # numbers gathered for each side
BINS = 64


class Snapshot(NamedTuple):
    """What the probe looks like at one moment; see `lab.frame.Frame`."""

    positions: NDArray[np.float32]
    embeddings: NDArray[np.float16]
    histogram: Histogram
    quality: dict[str, float | None]
    collapse: dict[str, float]


class Probe:
    """Held-out points that no step trains on; for free points, the points themselves.

    Args:
        data: the data set.
        held_out: False takes the training points, in their order.
        seed: fixes the pairs of the histograms.
        dim: embedding size; wide embeddings get fewer pairs, so that a frame costs about the same.
    """

    def __init__(self, data: Dataset, held_out: bool, seed: int, dim: int) -> None:
        self.index = (data.held_out if held_out else data.train)[:MAX_POINTS]
        labels = data.labels[self.index]
        self.labels = torch.from_numpy(labels)
        self.previous: Tensor | None = None
        self.range: tuple[float, float] | None = None
        each = min(MAX_PAIRS // 2, max(MIN_PAIRS // 2, PAIR_ENTRIES // dim))
        rng = np.random.default_rng([seed, 2])
        self.pairs = [
            (torch.from_numpy(anchors), torch.from_numpy(others))
            for anchors, others in (sample_pairs(labels, side, each, rng) for side in (True, False))
        ]

    def look(self, embeddings: Tensor, loss: nn.Module, with_map: bool) -> Snapshot | None:
        """The snapshot of embeddings (N, D), or None when they are not finite."""
        if not bool(embeddings.isfinite().all()):
            return None
        measured = as_measured(embeddings, loss)
        positions = snapped(project(embeddings.float(), self.previous).cpu().numpy())
        self.previous = torch.from_numpy(positions)
        return Snapshot(
            positions,
            embeddings.clamp(-65_504, 65_504).half().cpu().numpy(),
            self._histogram(embeddings, loss),
            quality(measured, self.labels.to(measured.device), with_map),
            collapse(embeddings),
        )

    def glance(self, step: int, embeddings: Tensor, loss: nn.Module) -> Glance | None:
        """Map and histograms alone, which cost little; the next frame is as if nobody had looked."""
        if not bool(embeddings.isfinite().all()):
            return None
        before = self.state
        positions = snapped(project(embeddings.float(), self.previous).cpu().numpy())
        seen = Glance(step, positions, self._histogram(embeddings, loss))
        self.state = before
        return seen

    @property
    def state(self) -> tuple[Tensor | None, tuple[float, float] | None]:
        """What the next frame takes over from the last one: positions and histogram range."""
        return self.previous, self.range

    @state.setter
    def state(self, state: tuple[Tensor | None, tuple[float, float] | None]) -> None:
        self.previous, self.range = state

    def resume(self, frame: Frame | None) -> None:
        """Go on from that frame's positions and histogram range."""
        if frame is not None:
            self.previous = torch.from_numpy(frame.positions)
            self.range = (frame.histogram.low, frame.histogram.high)

    def _histogram(self, embeddings: Tensor, loss: nn.Module) -> Histogram:
        distance: Any = loss.distance
        sides = [distance.pairwise(embeddings[anchors], embeddings[others]) for anchors, others in self.pairs]
        low, high = self._axis(distance, sides)
        positive, negative = (
            torch.histc(side.float().clamp(low, high), BINS, low, high).cpu().numpy().astype(np.int32)
            for side in sides
        )
        return Histogram(low, high, positive, negative)

    def _axis(self, distance: Any, sides: list[Tensor]) -> tuple[float, float]:
        """Ends of the axis: the distance's own, or ends that grow in steps 1, 2, 5, 10 and so on."""
        low, high = distance.bounds()
        before = self.range or (0.0, 0.0)
        held = [side for side in sides if side.numel()]
        if not math.isfinite(low):
            least = min((side.min().item() for side in held), default=0.0)
            low = min(before[0], -rounded_up(-least))
        if not math.isfinite(high):
            most = max((side.max().item() for side in held), default=1.0)
            high = max(before[1], rounded_up(most))
        self.range = (low, high if high > low else low + 1.0)
        return self.range


def rounded_up(value: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below the value; 0 for what is not positive."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def sample_pairs(
    labels: NDArray[np.int64], positive: bool, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """At most `count` different positive (or negative) pairs, uniform over all there are."""
    total = len(labels)
    _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = np.argsort(group, kind="stable")
    ends = np.cumsum(sizes)
    own = sizes[group[by_class]]
    partners = own - 1 if positive else total - own
    if not partners.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Points stand in order of class. A positive is some places further round the own class, a negative
    # some places beyond its end, round the whole set: every partner is met once, nothing is rejected.
    anchor = rng.choice(total, size=count, p=partners / partners.sum())
    ahead = rng.integers(0, partners[anchor])
    end, size = ends[group[by_class[anchor]]], own[anchor]
    start = end - size
    other = start + (anchor - start + 1 + ahead) % size if positive else (end + ahead) % total
    first, second = by_class[anchor], by_class[other]
    code = np.unique(np.minimum(first, second) * total + np.maximum(first, second))
    return code // total, code % total
