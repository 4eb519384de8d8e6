"""What one loss makes of a placement: its value, the gradient of each point, and the weight of each pair."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lab.playground.placement import CIRCLE, Placement, settled
from losslib.base import PairLoss
from losslib.pair_matrix import Pairs
from losslib.weights import PairWeights

_LOG = logging.getLogger("losslab")
NOTHING = 1e-14  # under it a value, gradient or weight is rounding
Point = tuple[float, float]


@dataclass(frozen=True)
class Pull:
    """An active pair, both of its directions together.

    Attributes:
        first: index of a point.
        second: index of the other, larger.
        positive: whether the pair is a positive one.
        value: distance or similarity, with the first as anchor.
        weight: derivative of the loss by it.
        attracts: whether a step brings the two closer, as the loss measures it.
    """

    first: int
    second: int
    positive: bool
    value: float
    weight: float
    attracts: bool


@dataclass(frozen=True)
class Evaluation:
    """One loss on one placement.

    Attributes:
        value: the loss; None where it refuses the placement or is not finite.
        arrows: minus the gradient of each point, along the circle if the points live there; empty likewise.
        pulls: the active pairs, the heaviest first; None where the loss has no pair weights.
        positives: number of positive pairs.
        negatives: number of negative pairs.
        reason: why there is no value, else "".
    """

    value: float | None
    arrows: tuple[Point, ...]
    pulls: tuple[Pull, ...] | None
    positives: int
    negatives: int
    reason: str = ""


def evaluate(loss: Any, placement: Placement, space: str) -> Evaluation:
    """Value, arrows and active pairs of a loss."""
    embeddings, labels = placement.tensors()
    same = labels.unsqueeze(1) == labels
    count = len(labels)
    positives = (int(same.sum()) - count) // 2
    counts = positives, count * (count - 1) // 2 - positives
    try:
        value, gradient, weights = all_of(loss, embeddings, labels)
        pulls = None if weights is None else pulls_of(weights, labels, loss.distance.is_inverted)
    except ValueError as error:
        return Evaluation(None, (), None, *counts, reason=str(error))
    except Exception:  # a loss of one's own: it must not take the others with it
        _LOG.exception("%s failed on %s", type(loss).__name__, placement)
        return Evaluation(None, (), None, *counts, reason="it failed, and the server's log says how")
    if not (math.isfinite(value) and bool(gradient.isfinite().all())):
        return Evaluation(None, (), None, *counts, reason="value or gradient is not a finite number here")
    arrows = -(along_circle(gradient, embeddings) if space == CIRCLE else gradient) + 0.0
    return Evaluation(value, tuple((x, y) for x, y in arrows.tolist()), pulls, *counts)


def all_of(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[float, Tensor, PairWeights | None]:
    """The loss, its gradient (N, 2), and its pair weights if it has any.

    In one pass where the loss is nothing but a function of its distance matrix: a drag waits for it.
    """
    cls = type(loss)
    usual = isinstance(loss, PairLoss) and cls.compute is PairLoss.compute and cls.forward is PairLoss.forward
    if not usual or "reducer" not in cls.parts:
        found = loss.pair_weights(embeddings, labels) if hasattr(loss, "pair_weights") else None
        return *value_and_gradient(loss, embeddings, labels), found
    x = embeddings.clone().requires_grad_()
    batch = loss.read(x, labels, None, None, None)
    values = loss.distance(x)
    pairs = Pairs(values, batch, loss.distance)
    total = loss.reducer(loss.terms(pairs), x, labels)
    if not total.requires_grad:
        gradient, weights = torch.zeros_like(x), torch.zeros_like(values)
    else:
        gradient, weights = torch.autograd.grad(total, (x, values), allow_unused=True, materialize_grads=True)
    rule = loss.activity_rule
    found = PairWeights(values.detach(), weights, pairs.positive, pairs.negative, rule)
    return float(total.detach()), gradient, found


def value_and_gradient(loss: Any, embeddings: Tensor, labels: Tensor) -> tuple[float, Tensor]:
    """The loss, and its gradient (N, 2) by the embeddings."""
    x = embeddings.clone().requires_grad_()
    value = loss(x, labels)
    if not value.requires_grad:
        return float(value), torch.zeros_like(x)
    (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    return float(value.detach()), gradient


def along_circle(gradient: Tensor, points: Tensor) -> Tensor:
    """The part of a gradient (N, 2) along the unit circle at the points (N, 2)."""
    return gradient - (gradient * points).sum(1, keepdim=True) * points


def pulls_of(found: PairWeights, labels: Tensor, inverted: bool) -> tuple[Pull, ...]:
    """The active pairs, each once, the heaviest first; `inverted` where larger is closer."""
    weight = found.weights + found.weights.T
    active = found.active | found.active.T
    rows, columns = torch.triu(active, 1).nonzero(as_tuple=True)
    table = zip(
        rows.tolist(),
        columns.tolist(),
        (labels[rows] == labels[columns]).tolist(),
        found.values[rows, columns].tolist(),
        weight[rows, columns].tolist(),
        strict=True,
    )
    pulls = (Pull(i, j, same, value, w, (w < 0) == inverted) for i, j, same, value, w in table)
    pulls = (pull for pull in pulls if abs(pull.weight) > NOTHING)  # the two directions may cancel out
    return tuple(sorted(pulls, key=lambda pull: -abs(pull.weight)))


def step(loss: Any, placement: Placement, space: str, rate: float) -> Placement:
    """One step of gradient descent on a loss; the placement itself where the loss gives no gradient.

    Points that would leave the plane's square stay at its edge; on the circle they return to it.
    """
    arrows = evaluate(loss, placement, space).arrows
    if not arrows:
        return placement
    pairs = zip(placement.points, arrows, strict=True)
    points = tuple((x + rate * u, y + rate * v) for (x, y), (u, v) in pairs)
    return settled(Placement(points, placement.classes), space)
