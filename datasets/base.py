"""The contract of a data set: arrays that never change, a split fixed by the seed, and what can be set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from losslib.errors import ParameterError
from losslib.params import Integer, Param, positive

KINDS = ("points", "images")


@dataclass(frozen=True, eq=False)
class Dataset:
    """One data set, split into training points and held-out points. All arrays are read-only.

    Args:
        name: name in the catalog.
        inputs: what encoders see, (N, F) for points or (N, 1, H, W) for images, float32.
        labels: class of each point, (N,), int64 from 0 to C - 1.
        class_names: C names.
        train: indices of the training points, int64.
        held_out: indices of the points that no step trains on, int64.
        images: pictures to show, (N, H, W) uint8, or None.
        note: one sentence on where the data come from, or "".
        continuous: continuous label of each point, (N,) float32, or None.
        true_labels: (N,) int64 where `labels` are what training is told and may be wrong, else None.
    """

    name: str
    inputs: NDArray[np.float32]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    train: NDArray[np.int64]
    held_out: NDArray[np.int64]
    images: NDArray[np.uint8] | None = None
    note: str = ""
    continuous: NDArray[np.float32] | None = None
    true_labels: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for array in vars(self).values():
            if isinstance(array, np.ndarray):
                array.flags.writeable = False

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def truth(self) -> NDArray[np.int64]:
        """The labels that quality is measured with: the true ones where they are known apart."""
        return self.labels if self.true_labels is None else self.true_labels

    @property
    def kind(self) -> str:
        """ "images" when there are pictures to show, else "points"."""
        return "points" if self.images is None else "images"


@dataclass(frozen=True)
class DatasetSpec:
    """What a data set's file declares; making one loads no data.

    `continuous` says what the continuous label is, "" where there is none.
    """

    name: str
    title: str
    summary: str
    options: dict[str, Param]
    kind: str
    loader: Callable[..., Dataset]
    continuous: str = ""

    def check(self, options: dict[str, Any]) -> dict[str, Any]:
        """All options, checked, with defaults filled in. Raises ParameterError."""
        for name in options:
            if name not in self.options:
                known = ", ".join(self.options) or "none"
                raise ParameterError(f"{self.name}: has no option {name!r}; options: {known}")
        return {
            name: param.check(options.get(name, param.default), self.name)
            for name, param in self.options.items()
        }


def points_option(default: int = 4000) -> Param:
    """The option for the number of points of a generated data set."""
    return Param(
        default,
        valid=Integer(40, 20_000),
        explore=(200, 10_000),
        name="points",
        meaning="number of points, half for training, half held out",
        larger="gives smoother figures and slower frames",
        step=100,
    )


def classes_option(most: int = 40) -> Param:
    """The option for the number of clouds of points."""
    return Param(
        6,
        valid=Integer(2, most),
        explore=(2, 10),
        name="classes",
        meaning="number of classes",
        larger="makes room on the map scarcer",
    )


def spread_option(default: float = 0.6) -> Param:
    """The option for how far the clouds of points spread."""
    return Param(
        default,
        valid=positive,
        explore=(0.1, 2.0),
        name="spread",
        meaning="standard deviation of a cloud; the centres have standard deviation 1",
        larger="makes classes overlap",
        step=0.1,
    )


def class_sizes(points: int, classes: int) -> NDArray[np.int64]:
    """Sizes of the classes, as equal as they can be, adding up to `points`."""
    return np.full(classes, points // classes) + (np.arange(classes) < points % classes)


def split(
    labels: NDArray[np.int64], held_out_share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and held-out indices in random order, each class split in the same proportion.

    Args:
        labels: (N,) int64.
        held_out_share: share of each class that is held out, between 0 and 1.
        seed: equal seeds give equal splits.
    """
    rng = np.random.default_rng([seed, 1])
    train, held_out = [], []
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        cut = round(len(members) * held_out_share)
        held_out.append(members[:cut])
        train.append(members[cut:])
    return rng.permutation(np.concatenate(train)), rng.permutation(np.concatenate(held_out))


def generated(
    name: str,
    inputs: NDArray[np.float64],
    labels: NDArray[np.int64],
    class_names: tuple[str, ...],
    seed: int,
    continuous: NDArray[np.floating[Any]] | None = None,
) -> Dataset:
    """A generated data set: inputs scaled to mean 0 and variance 1, half of each class held out."""
    train, held_out = split(labels, 0.5, seed)
    values = None if continuous is None else continuous.astype(np.float32)
    return Dataset(name, scaled(inputs), labels, class_names, train, held_out, continuous=values)


def scaled(inputs: NDArray[np.float64]) -> NDArray[np.float32]:
    """Inputs (N, F) at mean 0 and, all coordinates together, variance 1."""
    centred = (inputs - inputs.mean(axis=0)) / max(float(inputs.std()), 1e-12)
    return centred.astype(np.float32)
