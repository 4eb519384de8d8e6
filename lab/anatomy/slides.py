"""Ways in which one pair slides from nearest to farthest while everything else of its batch is held."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.anatomy.batch import Batch
from lab.anatomy.subject import Subject, measure
from lab.anatomy.vectorised import values_and_gradients
from lab.scenes import AXES, OwnDraws, Scene, scenes_of
from losslib.base import PairLoss
from losslib.distances import Distance
from losslib.pair_matrix import Pairs
from losslib.proxies import ProxyLoss
from losslib.reducers import SumReducer
from losslib.two_views import TwoViewLoss

SIDES = ("positive", "negative")


class Along(NamedTuple):
    """What a pair meets along its way, (G,) each: distance, loss, gradient by the distance."""

    at: NDArray[np.float64]
    value: NDArray[np.float64]
    slope: NDArray[np.float64]


class RowSlide:
    """A row turns from the direction of its partner to the opposite one, in a scene.

    Attributes:
        held: what slides and what is held, in a sentence.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.held = scene.held

    def along(self, subject: Subject, side: str, angles: NDArray[np.float64]) -> Along:
        """Distance, loss and gradient at these angles to the partner, in radians."""
        partner, first, across = self.scene.plane(side)
        sizes = {"embedding_size": len(partner)} if len(partner) != AXES.shape[1] else {}

        def make() -> Any:
            loss = subject.built(**sizes)
            self.scene.place(loss, side)
            return loss

        edge = self.scene.edge
        turn = torch.from_numpy(angles).clamp(edge, math.pi - edge).unsqueeze(1)
        rows = turn.cos() * first + turn.sin() * across
        onward = turn.cos() * across - turn.sin() * first
        at, pace = _pace(measure(make()), partner, rows, onward)
        values, gradients = values_and_gradients(
            make, lambda loss, x: self.scene.call(loss, x.unsqueeze(0), side), rows
        )
        slope = (gradients * onward).sum(1) / pace
        return Along(at.numpy(), values.numpy(), slope.numpy())

    def start(self, subject: Subject, side: str) -> float | None:
        """The distance at which the pair truly stands; it stands nowhere in a made scene."""
        return None


class EntrySlide:
    """One pair's entry of a batch's distance matrix slides; every other entry stays as it is."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.held = (
            f"One pair of {batch.name} slides, the one that carries most weight there; the distances of all "
            "other pairs stay as they are, and the loss is that of the whole batch."
        )

    def along(self, subject: Subject, side: str, angles: NDArray[np.float64]) -> Along:
        """Distance, loss and gradient where the pair would stand at these angles, in radians."""
        loss = subject.built()
        base, place = self._place(subject, side)
        rows = self.batch.embeddings
        anchor, other = (rows[int(i)].norm() for i in place.nonzero()[0])
        turn = torch.from_numpy(angles).unsqueeze(1)
        turned = other * (turn.cos() * AXES[0] + turn.sin() * AXES[1])
        at = measure(loss).pairwise((anchor * AXES[:1]).expand(len(turned), -1), turned)
        values, gradients = values_and_gradients(subject.built, self._call(base, place), at)
        return Along(at.numpy(), values.numpy(), gradients.numpy())

    def start(self, subject: Subject, side: str) -> float | None:
        """The distance at which the pair truly stands."""
        base, place = self._place(subject, side)
        return float(base[place][0])

    def _call(self, base: Tensor, place: Tensor) -> Any:
        """The loss of the batch where the entries of a mask have another value."""
        embeddings, labels = self.batch.embeddings, self.batch.labels

        def call(loss: Any, value: Tensor) -> Tensor:
            batch = loss.read(embeddings, labels, None, None, None)
            pairs = Pairs(torch.where(place, value, base), batch, loss.distance)
            reducer = loss.reducer if "reducer" in loss.parts else SumReducer()
            reduced: Tensor = reducer(loss.terms(pairs), embeddings, labels)
            return reduced

        return call

    def _place(self, subject: Subject, side: str) -> tuple[Tensor, Tensor]:
        """The distance matrix, and the mask of the side's heaviest pair: both its places if it has two."""
        with OwnDraws():
            found = subject.built().pair_weights(self.batch.embeddings, self.batch.labels)
        mutual = bool(torch.allclose(found.values, found.values.T))
        weights = (found.weights + found.weights.T if mutual else found.weights).abs()
        side_mask = found.positive if side == "positive" else found.negative
        farther = (
            found.values if (side == "positive") != measure(subject.built()).is_inverted else -found.values
        )
        rank = (farther - farther.min()) / (farther.max() - farther.min()).clamp_min(1e-12)
        # of pairs that weigh alike the hardest one is taken: the farthest positive, the nearest negative
        heaviest = weights / weights.max().clamp_min(1e-300) + 1e-6 * rank
        place = torch.zeros_like(side_mask)
        row, column = divmod(int(heaviest.masked_fill(~side_mask, -1).argmax()), side_mask.shape[1])
        place[row, column] = True
        if mutual:
            place[column, row] = True
        return found.values, place


class Plane(NamedTuple):
    """A partner, and the plane in which a row turns away from it, (D,) each."""

    partner: Tensor
    first: Tensor
    across: Tensor


def turning(partner: Tensor, row: Tensor) -> Plane:
    """The plane of two rows: turning leads past where the row stands, at its own length."""
    toward = partner / partner.norm()
    across = row - (row @ toward) * toward
    length = row.norm()
    return Plane(partner, toward * length, across / across.norm().clamp_min(1e-12) * length)


def row_in_batch(batch: Batch) -> Scene:
    """A row of the batch turns away from another one of its class, or of another class."""
    rows, labels = batch.embeddings, batch.labels
    place = 0
    partners = {
        "positive": int((labels == labels[0]).nonzero()[1]),
        "negative": int((labels != labels[0]).nonzero()[0]),
    }
    return Scene(
        f"One row of {batch.name} turns away from another row of its class (positive) or of another class "
        "(negative); its distances to all other rows change with it, and those rows are held. The gradient "
        "is that along the turn, of all these distances together, for each unit of this one.",
        lambda loss, x, side: loss(torch.cat([x, rows[1:]]), labels),
        plane=lambda side: turning(rows[partners[side]], rows[place]),
        edge=TURNED,
    )


def views_in_batch(batch: Batch) -> Scene:
    """A row turns away from its own or another sample's second view, which is the first with noise."""
    first = batch.embeddings[:: max(len(batch.embeddings) // VIEWED, 1)][:VIEWED]
    rng = np.random.default_rng(1)
    second = first + 0.3 * first.norm(dim=1).mean() / math.sqrt(first.shape[1]) * torch.from_numpy(
        rng.standard_normal(first.shape)
    )
    partners = {"positive": 0, "negative": 1}
    return Scene(
        f"{len(first)} samples of {batch.name} with a second view each (noise of 0.3 of their length, seed "
        "1). One row turns away from its other view (positive) or from another sample's view (negative); all "
        "other rows are held. The gradient is that along the turn, of all distances of that row together, "
        "for each unit of this one.",
        lambda loss, x, side: loss(torch.cat([x, first[1:]]), ref_emb=second),
        plane=lambda side: turning(second[partners[side]], first[0]),
        edge=TURNED,
    )


VIEWED = 16
TURNED = 0.35  # radians: nearer to the ends other distances change faster than this one


@dataclass(frozen=True)
class Way:
    """A slide that is tried, and the least gradient with which it shows something."""

    slide: RowSlide | EntrySlide
    least: float


def ways(cls: type[Any], batch: Batch | None) -> list[Way]:
    """The slides to try, the best first: in the batch where one is given, else among few pairs."""
    made = [Way(RowSlide(scene), FLAT) for scene in scenes_of(cls)]
    if batch is None or issubclass(cls, ProxyLoss):
        return made
    if issubclass(cls, PairLoss):
        return [Way(EntrySlide(batch), NOTHING), *made]
    if issubclass(cls, TwoViewLoss):
        return [Way(RowSlide(views_in_batch(batch)), NOTHING), *made]
    return [Way(RowSlide(row_in_batch(batch)), NOTHING), *made]


FLAT = 0.01  # a made scene in which no gradient exceeds this shows nothing of the loss
NOTHING = 1e-9  # gradients under it are rounding


def _pace(distance: Distance, partner: Tensor, rows: Tensor, onward: Tensor) -> tuple[Tensor, Tensor]:
    """Distance to the partner (G,), and how fast it grows along the turn (G,)."""
    x = rows.clone().requires_grad_()
    at = distance.pairwise(partner.expand(len(rows), -1), x)
    (gradient,) = torch.autograd.grad(at.sum(), x)
    return at.detach(), (gradient * onward).sum(1)
