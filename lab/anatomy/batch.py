"""The batch whose distances are shown beside a loss's curves: of a run, or a small example."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import datasets
from lab.measured_on import measured_on
from losslib import catalog
from losslib.distances import Distance

if TYPE_CHECKING:
    from lab.recording import Recording

CLASSES, EACH, SIZE = 4, 8, 8
SCATTER = 0.22  # standard deviation of each coordinate about the unit centre of its class


@dataclass(frozen=True, eq=False)
class Batch:
    """Embeddings with labels, and where they come from.

    Attributes:
        embeddings: (B, D) float64.
        labels: (B,) int64, from 0 on.
        name: in a few words, as in "the example batch".
        said: where they come from, in a sentence.
    """

    embeddings: Tensor
    labels: Tensor
    name: str
    said: str

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1


@cache
def example_batch() -> Batch:
    """Four classes of eight rows about unit centres in eight dimensions; the same at every call."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((CLASSES, SIZE))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    labels = np.repeat(np.arange(CLASSES), EACH)
    rows = centres[labels] + SCATTER * rng.standard_normal((len(labels), SIZE))
    return Batch(
        torch.from_numpy(rows),
        torch.from_numpy(labels),
        "the example batch",
        f"The example batch has {len(rows)} embeddings of {CLASSES} classes in {SIZE} dimensions, drawn "
        "about a unit centre for each class (seed 0).",
    )


def batch_of(recording: Recording) -> Batch | None:
    """A batch of a run's newest embeddings: up to four classes of eight of its map's points (seed 0).

    Of two coordinates the map itself shows them. None where no frame has embeddings, or where there are not
    two classes with two points.
    """
    flat = recording.config.dim == 2
    frame = next((one for one in reversed(recording.frames) if flat or one.embeddings is not None), None)
    if frame is None:
        return None
    embeddings = frame.positions if frame.embeddings is None else frame.embeddings
    rng = np.random.default_rng(0)
    names, counts = np.unique(recording.labels, return_counts=True)
    chosen = rng.permutation(names[counts > 1])[:CLASSES]
    if len(chosen) < 2:
        return None
    places = [rng.permutation(np.flatnonzero(recording.labels == name))[:EACH] for name in np.sort(chosen)]
    labels = np.repeat(np.arange(len(places)), [len(one) for one in places])
    rows = embeddings[np.concatenate(places)].astype(np.float64)
    if not np.isfinite(rows).all():
        return None
    what = measured_on(recording.config)
    loss, data = catalog.get(recording.config.loss).title, datasets.get(recording.config.data).title
    return Batch(
        torch.from_numpy(rows),
        torch.from_numpy(labels),
        "the batch of the Train run",
        f"The batch of the Train run has {len(rows)} {what} points of {len(places)} classes, embedded as "
        f"they are at step {frame.step} ({loss} on {data}).",
    )


@dataclass(frozen=True)
class Rug:
    """Distances (or similarities) of a batch's pairs.

    Attributes:
        positive: (P,).
        negative: (N,).
        said: what they are, in a sentence.
    """

    positive: NDArray[np.float64]
    negative: NDArray[np.float64]
    said: str


def pairs_rug(batch: Batch, distance: Distance) -> Rug:
    """Every pair of the batch once."""
    values = distance(batch.embeddings).numpy()
    labels = batch.labels.numpy()
    same = labels[:, None] == labels[None]
    once = np.triu(np.ones_like(same), 1)
    return Rug(values[same & once], values[~same & once], f"The ticks are the pairs of {batch.name}.")


def proxies_rug(batch: Batch, distance: Distance) -> Rug:
    """Every row against its own class's centre, a stand-in for a proxy, and against the others'."""
    values = distance(batch.embeddings, class_centres(batch)).numpy()
    own = batch.labels.numpy()[:, None] == np.arange(batch.classes)[None]
    return Rug(
        values[own],
        values[~own],
        f"The ticks are the rows of {batch.name} against the centres of their own and of other classes, "
        "which stand in for the proxies.",
    )


def class_centres(batch: Batch) -> Tensor:
    """Mean of the rows of each class, (C, D)."""
    members = torch.nn.functional.one_hot(batch.labels, batch.classes).T.double()
    centres: Tensor = members @ batch.embeddings / members.sum(1, keepdim=True)
    return centres
