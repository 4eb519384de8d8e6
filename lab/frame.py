"""A `Frame`: everything that one moment of a run shows, as plain numpy arrays and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.compact import HeldEmbeddings, HeldMap, HeldWeights, holding
from losslib.types import Mark


@dataclass(frozen=True)
class TermSummary:
    """One term of the loss on the step's batch: values, their sum, and how many of them are above 0."""

    name: str
    count: int
    total: float
    active: int


class PairShare(NamedTuple):
    """One pair of the step's batch and what it carries.

    anchor and other are data set indices; value is its distance or similarity; weight the derivative of
    the loss by it; share the part of the sum of all |weights|.
    """

    anchor: int
    other: int
    positive: bool
    value: float
    weight: float
    share: float


class Histogram(NamedTuple):
    """Counts of pairs in bins of equal width from `low` to `high`, on the axis of the loss's own distance."""

    low: float
    high: float
    positive: NDArray[np.int32]
    negative: NDArray[np.int32]


class Glance(NamedTuple):
    """What the map and the histograms look like between two frames; it is not recorded.

    step is the number of updates made; positions (N, 2) and histogram are as in a `Frame`.
    """

    step: int
    positions: NDArray[np.float32]
    histogram: Histogram


@holding(weights=HeldWeights())
@dataclass(frozen=True, eq=False)
class BatchView:
    """The step's batch before the update, rows ordered by class.

    Args:
        index: data set indices, (B,) int32.
        labels: (B,) int32.
        weights: |pair weight| of row i and column j, (B, B) uint8, 255 for the largest.
        top: the pairs that carry most, largest share first.
        reach: first and one after the last positive of each row, itself among them, (B, 2); None where
            positives are rows of equal labels.
    """

    index: NDArray[np.int32]
    labels: NDArray[np.int32]
    weights: NDArray[np.uint8]
    top: tuple[PairShare, ...] = ()
    reach: NDArray[np.int32] | None = None

    @property
    def positive(self) -> NDArray[np.bool_]:
        """Mask (B, B) of the positive pairs of the rule of pairing, whether mined or not."""
        if self.reach is None:
            mask: NDArray[np.bool_] = self.labels[:, None] == self.labels
        else:
            columns = np.arange(len(self.labels))
            mask = (columns >= self.reach[:, :1]) & (columns < self.reach[:, 1:])
        np.fill_diagonal(mask, val=False)
        return mask


@holding(positions=HeldMap(), embeddings=HeldEmbeddings())
@dataclass(frozen=True, eq=False)
class Frame:
    """One moment of a run; its large arrays are packed, and new each time they are asked for.

    Loss, active share, terms, gradient norm and batch come from the step's batch before the update
    (step 0: the first batch, no update); positions, histogram, quality and collapse from the probe after it.

    Args:
        step: updates made so far.
        positions: the map, (N, 2) float32, on the grid of `lab.grid`.
        loss: value of the loss.
        active_share: share of the batch's pairs that still have a gradient, 0 to 1; NaN without pairs.
        histogram: distances of a fixed sample of probe pairs.
        quality: recall_at_1, map_at_r (None on frames that leave it out), alignment, uniformity.
        collapse: spread, effective_rank, mean_cosine (NaN where `at_origin`, which leaves it undefined).
        gradient_norm: norm of the encoder's gradient.
        learning_rate: rate in force.
        batch: the step's batch.
        terms: the loss's terms.
        marks: margins and temperature in force.
        embeddings: (N, D) float16, or None where the recording had no room.
        extra: True for a frame that was asked for by hand between two of the regular ones.
    """

    step: int
    positions: NDArray[np.float32]
    loss: float
    active_share: float
    histogram: Histogram
    quality: dict[str, float | None]
    collapse: dict[str, float]
    gradient_norm: float
    learning_rate: float
    batch: BatchView
    terms: tuple[TermSummary, ...] = ()
    marks: tuple[Mark, ...] = ()
    embeddings: NDArray[np.float16] | None = field(default=None, repr=False)
    extra: bool = False

    @property
    def at_origin(self) -> bool:
        """Whether every embedding is the zero vector: all are equal, yet their mean cosine is not 1."""
        equal = self.collapse["spread"] == 0 and len(self.positions) > 1
        return equal and not self.collapse["mean_cosine"] >= 0.5  # NaN; older recordings have 0

    @cached_property
    def embedding_bytes(self) -> int:
        """Bytes of the embeddings, 0 without any."""
        return 0 if self.embeddings is None else self.embeddings.nbytes

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the arrays but the embeddings; a recording asks every frame whenever one is added.

        What a frame holds takes less, see `lab.compact`; this does not depend on what it shows.
        """
        h, b = self.histogram, self.batch
        arrays = (self.positions, h.positive, h.negative, b.index, b.labels, b.weights, b.reach)
        return sum(array.nbytes for array in arrays if array is not None)


def identical(first: Any, second: Any) -> bool:
    """Whether two frames, or parts of them, are equal bit for bit; NaN equals NaN."""
    if type(first) is not type(second):
        return False
    if isinstance(first, np.ndarray):
        alike = first.dtype == second.dtype and first.shape == second.shape
        return alike and first.tobytes() == second.tobytes()
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(identical(first[key], second[key]) for key in first)
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(identical, first, second))
    if is_dataclass(first):
        return all(identical(getattr(first, f.name), getattr(second, f.name)) for f in fields(first))
    return bool(first == second or (first != first and second != second))  # noqa: PLR0124 (NaN)
