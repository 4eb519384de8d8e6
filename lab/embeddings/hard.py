"""Pairs that contradict their labels, and rows whose neighbours do: candidates for a wrong label."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from losslib.distances import LpDistance
from losslib.errors import ParameterError
from losslib.params import Integer, Param

NEIGHBOURS = 10
ENTRIES = 4_000_000  # of a tile of distances
_COUNT = Param(20, valid=Integer(1, 1000), name="count")


class HardPair(NamedTuple):
    """Two rows and their Euclidean distance at length 1, from 0 to 2."""

    anchor: int
    other: int
    distance: float


class Suspect(NamedTuple):
    """A row whose neighbours mostly have another label.

    Attributes:
        row: place among the embeddings.
        label: its own.
        suggested: the label most of its neighbours have.
        votes: share of its neighbours that have it.
        own: share that have its own.
    """

    row: int
    label: int
    suggested: int
    votes: float
    own: float


def hardest_pairs(
    embeddings: Tensor, labels: Tensor, count: int = 20
) -> tuple[tuple[HardPair, ...], tuple[HardPair, ...]]:
    """The farthest positive pairs and the nearest negative pairs, hardest first, each pair once.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
        count: of each.
    """
    _COUNT.check(count, "hardest_pairs")
    unit = LpDistance().normalize(embeddings.double())
    positives: list[tuple[float, int, int]] = []
    negatives: list[tuple[float, int, int]] = []
    columns = torch.arange(len(unit))
    for start, cosine in _tiles(unit):
        rows = columns[start : start + len(cosine), None]
        once = columns > rows
        same = labels[start : start + len(cosine), None] == labels
        for mask, sign, kept in ((once & same, -1, positives), (once & ~same, 1, negatives)):
            score = torch.where(mask, sign * cosine, -torch.inf).flatten()
            best = score.topk(min(count, len(score)))
            for value, place in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                if value > -torch.inf:
                    kept.append((value, start + place // len(unit), place % len(unit)))
            kept.sort(key=lambda one: (-one[0], one[1], one[2]))
            del kept[count:]
    return _measured(unit, positives), _measured(unit, negatives)


def _measured(unit: Tensor, found: list[tuple[float, int, int]]) -> tuple[HardPair, ...]:
    return tuple(HardPair(i, j, float((unit[i] - unit[j]).norm())) for _, i, j in found)


def suspects(
    embeddings: Tensor, labels: Tensor, count: int = 20, neighbours: int = NEIGHBOURS
) -> tuple[Suspect, ...]:
    """Rows of which at least half the nearest neighbours share one other label, clearest first.

    Args:
        embeddings: (N, D) finite; compared at length 1.
        labels: (N,) from 0.
        count: at most so many.
        neighbours: how many neighbours vote; fewer where there are not so many other rows.

    Raises:
        ParameterError: a count below 1.
    """
    _COUNT.check(count, "suspects")
    if neighbours < 1:
        raise ParameterError(f"suspects: neighbours must be an integer >= 1, got {neighbours}")
    unit = LpDistance().normalize(embeddings.double())
    voters = min(neighbours, len(unit) - 1)
    if voters < 1:
        return ()
    classes = int(labels.max()) + 1
    found: list[Suspect] = []
    for start, cosine in _tiles(unit):
        cosine.diagonal(start).fill_(-torch.inf)
        near = labels[cosine.topk(voters, dim=1).indices]
        votes = torch.zeros(len(cosine), classes).scatter_add_(1, near, torch.ones(near.shape)) / voters
        own = labels[start : start + len(cosine)]
        mine = votes.gather(1, own[:, None]).squeeze(1)
        most, suggested = votes.max(dim=1)
        wrong = (suggested != own) & (most >= 0.5)
        found += [
            Suspect(start + at, int(own[at]), int(suggested[at]), float(most[at]), float(mine[at]))
            for at in wrong.nonzero().flatten().tolist()
        ]
    return tuple(sorted(found, key=lambda one: (one.own - one.votes, one.row))[:count])


def _tiles(unit: Tensor) -> Iterator[tuple[int, Tensor]]:
    """First row, and cosines of a tile of rows to all."""
    rows = max(1, ENTRIES // max(len(unit), 1))
    for start in range(0, len(unit), rows):
        yield start, unit[start : start + rows] @ unit.T
