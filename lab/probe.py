"""The fixed points that every frame shows: map, distance histograms, quality."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from datasets import Dataset
from lab.augmentations import two_views
from lab.frame import Frame, Glance, Histogram
from lab.grid import snapped
from lab.metrics import alignment_of_pairs, as_measured, collapse, quality, quality_within
from lab.probe_pairs import Pairs, sample_pairs, sample_pairs_within, sample_view_pairs
from lab.projections import project
from lab.retrieval import positives_within
from lab.shared import drawn_once

MAX_POINTS = 5_000
MAX_VIEWS = 1_000  # samples of which two views are compared
MAX_PAIRS = 25_000
MIN_PAIRS = 3_000
PAIR_ENTRIES = 200_000  # numbers gathered for each side
BINS = 64
FAR = 1e38  # about where single precision ends: distances beyond it count as there, and the loss tells


class Snapshot(NamedTuple):
    """What the probe looks like at one moment; see `lab.frame.Frame`."""

    positions: NDArray[np.float32]
    embeddings: NDArray[np.float16]
    histogram: Histogram
    quality: dict[str, float | None]
    collapse: dict[str, float]


class Probe:
    """Held-out points that no step trains on; for free points, the points themselves.

    What counts as a positive pair follows the rule of pairing, on true labels; see `lab.pairing.RULES`.

    Args:
        data: the data set.
        held_out: False takes the training points, in their order.
        seed: fixes the pairs of the histograms.
        dim: embedding size; wide embeddings get fewer pairs, so that a frame costs about the same.
        pairing: the rule of pairing.
        delta: with a continuous label, how far those of positives are apart at most.

    Attributes:
        view_inputs: first and then second views of the first points, (2 V, ...), where the rule is views;
            `look` and `glance` need their embeddings too.
        chance: recall@1 of random embeddings.
    """

    def __init__(
        self, data: Dataset, held_out: bool, seed: int, dim: int, pairing: str = "label", delta: float = 0.0
    ) -> None:
        self.index = (data.held_out if held_out else data.train)[:MAX_POINTS]
        labels = data.truth[self.index]
        self.labels = torch.from_numpy(labels)
        self.delta = delta
        self.values: Tensor | None = None
        self.previous: Tensor | None = None
        self.range: tuple[float, float] | None = None
        sampled = drawn_once(
            data,
            (held_out, seed, dim, pairing, delta),
            lambda: sample(data, self.index, seed, dim, pairing, delta),
        )
        self.chance, self.pairs, self.view_inputs = sampled
        if pairing == "continuous" and data.continuous is not None:
            self.values = torch.from_numpy(data.continuous[self.index])

    def look(
        self, embeddings: Tensor, loss: nn.Module, with_map: bool, views: Tensor | None = None
    ) -> Snapshot | None:
        """The snapshot of embeddings (N, D), or None when they are not finite.

        views: embeddings of `view_inputs`, where there are any.
        """
        compared = embeddings if views is None else views
        if not bool(embeddings.isfinite().all() & compared.isfinite().all()):
            return None
        measured = as_measured(embeddings, loss)
        positions = snapped(project(embeddings.float(), self.previous).cpu().numpy())
        self.previous = torch.from_numpy(positions)
        return Snapshot(
            positions,
            kept_embeddings(embeddings, positions),
            self._histogram(compared, loss),
            self._quality(measured, compared, with_map),
            collapse(embeddings),
        )

    def _quality(self, measured: Tensor, compared: Tensor, with_map: bool) -> dict[str, float | None]:
        """As `lab.metrics.quality`, by the rule of pairing."""
        if self.values is not None:
            found = quality_within(measured, self.values, self.delta, with_map)
        else:
            found = quality(measured, self.labels.to(measured.device), with_map)
        if self.values is not None or self.view_inputs is not None:
            found["alignment"] = alignment_of_pairs(compared, *self.pairs[0])
        return found

    def glance(
        self, step: int, embeddings: Tensor, loss: nn.Module, views: Tensor | None = None
    ) -> Glance | None:
        """Map and histograms alone, which cost little; the next frame is as if nobody had looked."""
        compared = embeddings if views is None else views
        if not bool(embeddings.isfinite().all() & compared.isfinite().all()):
            return None
        before = self.state
        positions = snapped(project(embeddings.float(), self.previous).cpu().numpy())
        seen = Glance(step, positions, self._histogram(compared, loss))
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
        given: Any = loss
        # losses of two views may have none of their own
        distance: Any = getattr(given, "distance", None) or type(given).default_distance()
        device = embeddings.device
        sides = [distance.of_pairs(embeddings, a.to(device), b.to(device)) for a, b in self.pairs]
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
            low = min(before[0], -rounded_up(min(-least, FAR)))
        if not math.isfinite(high):
            most = max((side.max().item() for side in held), default=1.0)
            high = max(before[1], rounded_up(min(most, FAR)))
        self.range = (low, high if high > low else low + 1.0)
        return self.range


class Sampled(NamedTuple):
    """What probes of the same data have in common: chance, pairs of either side, inputs of views."""

    chance: float
    pairs: list[tuple[Tensor, Tensor]]
    view_inputs: Tensor | None


def sample(
    data: Dataset, index: NDArray[np.int64], seed: int, dim: int, pairing: str, delta: float
) -> Sampled:
    """Which pairs of the points (N,) the histograms compare, by the rule of pairing."""
    labels = data.truth[index]
    each = min(MAX_PAIRS // 2, max(MIN_PAIRS // 2, PAIR_ENTRIES // dim))
    rng = np.random.default_rng([seed, 2])
    shares = np.bincount(labels) / max(len(labels), 1)
    chance, views = float((shares**2).sum()), None
    of_side: Callable[[bool], Pairs] = lambda side: sample_pairs(labels, side, each, rng)  # noqa: E731
    if pairing == "continuous" and data.continuous is not None:
        values = data.continuous[index]
        chance = float(positives_within(values, delta).mean() / max(len(values) - 1, 1))
        of_side = lambda side: sample_pairs_within(values, delta, side, each, rng)  # noqa: E731
    elif pairing == "views":
        views = fixed_views(data, index[:MAX_VIEWS], seed)
        count = len(views) // 2
        of_side = lambda side: sample_view_pairs(count, side, each, rng)  # noqa: E731
    pairs = [
        (torch.from_numpy(anchors), torch.from_numpy(others))
        for anchors, others in (of_side(side) for side in (True, False))
    ]
    return Sampled(chance, pairs, views)


def fixed_views(data: Dataset, index: NDArray[np.int64], seed: int) -> Tensor:
    """First and then second views of points (V,), the same for the same seed, (2 V, ...)."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return two_views(torch.from_numpy(data.inputs[index]), data.kind)


def rounded_up(value: float) -> float:
    """The least of 1, 2, 5 times a power of ten that is not below the value; 0 for what is not positive."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def kept_embeddings(embeddings: Tensor, positions: NDArray[np.float32]) -> NDArray[np.float16]:
    """What a frame keeps of them, (N, D) float16; of two coordinates those of the map, which are the same."""
    known = torch.from_numpy(positions) if embeddings.shape[1] == 2 else embeddings
    return known.clamp(-65_504, 65_504).half().cpu().numpy()
