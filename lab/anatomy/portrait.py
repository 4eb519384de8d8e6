"""The force portrait: minus the gradient that a free point of the plane feels among held points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.anatomy.subject import Subject, measure
from lab.anatomy.vectorised import Call, values_and_gradients
from losslib.proxies import ProxyLoss
from losslib.two_views import TwoViewLoss

ANGLES = (25, 65, 150, 195, 275, 320)  # of the held points, two for each class; on the unit circle
LABELS = (0, 0, 1, 1, 2, 2)
CLASSES = 3
NAMES = ("A", "B", "C")
REACH, ACROSS, AROUND = 1.5, 25, 32  # half the plane's side, points along it, points on the circle
STILL = 1e-9  # forces under it are rounding
APART = math.radians(8)  # between the rows that stand for one class, and between the views of a sample


@dataclass(frozen=True)
class Portrait:
    """What a free point feels.

    Attributes:
        axis: coordinates of the grid along either side, (G,).
        value: the loss with the free point there, (G, G), rows by height.
        force: minus the gradient, (G, G, 2).
        held: positions of the held points, (H, 2).
        labels: their classes (H,).
        free: class of the free point.
        circle: angles on the unit circle (R,), where only the direction matters; else empty.
        circle_value: the loss there, (R,).
        circle_force: minus the gradient there, (R, 2).
        said: what is held, in a sentence.
        axes: the distance in words.
    """

    axis: NDArray[np.float64]
    value: NDArray[np.float64]
    force: NDArray[np.float64]
    held: NDArray[np.float64]
    labels: NDArray[np.int64]
    free: int
    circle: NDArray[np.float64]
    circle_value: NDArray[np.float64]
    circle_force: NDArray[np.float64]
    said: str
    axes: str

    @property
    def still(self) -> NDArray[np.bool_]:
        """Where on the grid nothing pulls, (G, G)."""
        return np.asarray(np.linalg.norm(self.force, axis=-1) <= STILL)


@lru_cache(maxsize=32)
def portrait(subject: Subject, free: int) -> Portrait:
    """What a free point of class `free` (0, 1 or 2) feels.

    Raises ValueError or TypeError where the loss refuses its options or the batch.
    """
    held, labels, make, call, said = _scene(subject, free)
    distance = measure(make())
    axis = np.linspace(-REACH, REACH, ACROSS)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    turns = bool(distance.normalize_embeddings) and "distance" in subject.cls.parts
    circle = np.linspace(0, 2 * np.pi, AROUND, endpoint=False) if turns else np.zeros(0)
    ring = np.stack([np.cos(circle), np.sin(circle)], 1)
    values, gradients = values_and_gradients(make, call, torch.from_numpy(np.concatenate([grid, ring])))
    value, force, inner = values.numpy(), -gradients.numpy(), len(grid)
    return Portrait(
        axis,
        value[:inner].reshape(ACROSS, ACROSS),
        force[:inner].reshape(ACROSS, ACROSS, 2),
        held.numpy(),
        labels.numpy(),
        free,
        circle,
        value[inner:],
        force[inner:],
        said,
        distance.title,
    )


def _scene(subject: Subject, free: int) -> tuple[Tensor, Tensor, Callable[[], Any], Call, str]:
    """Held points (H, 2), their classes, how the loss is made, its call at a place (2,), and a sentence."""
    if issubclass(subject.cls, ProxyLoss):
        return _among_proxies(subject, free)
    if issubclass(subject.cls, TwoViewLoss):
        return _among_views(subject, free)
    gone = LABELS.index(free)
    angles = [angle for place, angle in enumerate(ANGLES) if place != gone]
    held = at_angles([math.radians(angle) for angle in angles])
    labels = torch.tensor([label for place, label in enumerate(LABELS) if place != gone])
    every = torch.cat([torch.tensor([free]), labels])

    def call(loss: Any, x: Tensor) -> Tensor:
        value: Tensor = loss(torch.cat([x.unsqueeze(0), held]), every)
        return value

    said = (
        "A batch of six points of three classes, five of them held on the unit circle; the free point is "
        f"the second one of class {NAMES[free]}."
    )
    return held, labels, lambda: subject.built(embedding_size=2), call, said


def _among_proxies(subject: Subject, free: int) -> tuple[Tensor, Tensor, Callable[[], Any], Call, str]:
    sizes = {"num_classes": CLASSES, "class_counts": (20, 10, 5), "embedding_size": 2}
    centres = [math.radians(angle) for angle in (45, 170, 300)]

    def make() -> Any:
        loss = subject.built(**sizes)
        with torch.no_grad():
            loss.weight.copy_(held_by(len(loss.weight) // CLASSES))
        return loss

    def held_by(each: int) -> Tensor:
        offsets = [(k - (each - 1) / 2) * APART for k in range(each)]
        return at_angles([centre + offset for centre in centres for offset in offsets])

    def call(loss: Any, x: Tensor) -> Tensor:
        value: Tensor = loss(x.unsqueeze(0), torch.tensor([free]))
        return value

    held = make().weight.detach()
    labels = torch.arange(CLASSES).repeat_interleave(len(held) // CLASSES)
    said = (
        f"The held points are the proxies of three classes; the free point is the only row of the batch, of "
        f"class {NAMES[free]}."
    )
    return held, labels, make, call, said


def _among_views(subject: Subject, free: int) -> tuple[Tensor, Tensor, Callable[[], Any], Call, str]:
    """Six samples in two views; the samples of a class are just samples here, each its own."""
    first = at_angles([math.radians(angle) for angle in ANGLES])
    second = at_angles([math.radians(angle) + APART for angle in ANGLES])
    place = LABELS.index(free)
    others = [i for i in range(len(ANGLES)) if i != place]

    def call(loss: Any, x: Tensor) -> Tensor:
        views = torch.cat([x.unsqueeze(0), first[others]])
        value: Tensor = loss(views, ref_emb=second[[place, *others]])
        return value

    labels = torch.tensor([free, *([(free + 1) % CLASSES] * len(others))])
    said = (
        "Six samples in two views. The free point is one view of a sample; the held points are the second "
        f"views, its own marked {NAMES[free]}, the others {NAMES[(free + 1) % CLASSES]}."
    )
    return second[[place, *others]], labels, subject.built, call, said


def at_angles(radians: list[float]) -> Tensor:
    """Points of the unit circle, (N, 2) float64."""
    turn = torch.tensor(radians, dtype=torch.float64)
    return torch.stack([turn.cos(), turn.sin()], 1)
