"""Nearest others in groups against all distances, number by number: ties, lines, circles, equal points."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from lab import retrieval
from lab.nearest import groups, nearest_others
from losslib import evaluation


def random(count: int, size: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)


def by_all_distances(points: NDArray[np.float32]) -> NDArray[np.int64]:
    """The first of the nearest, coordinate by coordinate in single precision."""
    squares = np.zeros((len(points), len(points)), np.float32)
    for column in points.T:
        squares += (column[:, None] - column) ** 2
    np.fill_diagonal(squares, np.inf)
    nearest: NDArray[np.int64] = squares.argmin(axis=1)
    return nearest


@pytest.mark.parametrize("count", [2, 3, 65, 700])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_nearest_is_the_nearest(count: int, size: int) -> None:
    points = random(count, size)
    found = nearest_others(points)
    assert found is not None
    assert found.tolist() == by_all_distances(points).tolist()


def test_of_equals_the_first_is_found() -> None:
    grid = np.stack(np.meshgrid(np.arange(25), np.arange(25)), axis=-1).reshape(-1, 2).astype(np.float32)
    shuffled = np.random.default_rng(3).permutation(np.concatenate([grid, grid[:90]]))
    found = nearest_others(shuffled)
    assert found is not None
    assert found.tolist() == by_all_distances(shuffled).tolist()


def test_far_clusters_and_a_circle() -> None:
    far = random(600, 2) * 1e-3 + 1e3 * (np.arange(600) % 7)[:, None].astype(np.float32)
    round_about = normalize(torch.from_numpy(random(600, 2)), dim=1).numpy()
    for points in (far, round_about):
        found = nearest_others(points)
        assert found is not None
        assert found.tolist() == by_all_distances(points).tolist()


def test_points_upon_each_other_are_left_to_all_distances() -> None:
    assert nearest_others(np.ones((700, 2), np.float32)) is None


def test_groups_hold_every_point_once_and_neighbours_together() -> None:
    points = random(701, 2)
    member = groups(points, 4)
    held = member[member >= 0]
    assert sorted(held.tolist()) == list(range(701))
    assert len(member) == 16
    strips = [points[row[row >= 0], 0] for row in member.reshape(4, -1)]
    assert all(strips[at].max() <= strips[at + 1].min() for at in range(3))


def trained(kind: str) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(5)
    labels = torch.randint(0, 6, (1500,), generator=draw)
    centres, noise = torch.randn(6, 2, generator=draw), torch.randn(1500, 2, generator=draw)
    spread = {"loose": 0.6, "circle": 0.3, "tight": 1e-4, "rounded": 0.4, "equal": 0.0}[kind]
    points = centres[labels] + spread * noise
    if kind in ("circle", "tight"):
        points = normalize(points, dim=1)
    return ((points * 50).round() / 50 if kind == "rounded" else points), labels


@pytest.mark.parametrize("kind", ["loose", "circle", "tight", "rounded", "equal"])
def test_recall_is_that_of_the_library_to_the_last_digit(kind: str) -> None:
    points, labels = trained(kind)
    labels[7] = 99  # without a positive: left out
    assert retrieval.recall_at_1(points, labels) == evaluation.recall_at_k(points, labels).item()


def test_positives_of_classes_and_of_numbers_that_are_no_places() -> None:
    assert retrieval.positives_of(np.array([2, 0, 2, 2, 1])).tolist() == [2, 0, 2, 2, 0]
    assert retrieval.positives_of(np.array([-5, 10**9, -5])).tolist() == [1, 0, 1]
