"""Retrieval of a run's probe against float64 loops over the definitions, and against `losslib.evaluation`."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab import retrieval
from losslib import evaluation


def clusters(count: int, size: int, classes: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, classes, (count,), generator=random)
    centres = torch.randn(classes, size, generator=random)
    return torch.randn(count, size, generator=random) + centres[labels], labels


def ranked(points: Tensor, row: int) -> NDArray[np.int64]:
    gaps = (points.double() - points[row].double()).norm(dim=1).numpy()
    gaps[row] = np.inf
    return np.argsort(gaps, kind="stable")


def by_hand(points: Tensor, labels: Tensor) -> tuple[float, float]:
    """Recall@1 and MAP@R, point by point."""
    recalls, averages = [], []
    for row in range(len(points)):
        total = int((labels == labels[row]).sum()) - 1
        if not total:
            continue
        hits = [bool(labels[other] == labels[row]) for other in ranked(points, row)[:total]]
        recalls.append(hits[0])
        averages.append(sum(sum(hits[: k + 1]) / (k + 1) for k in range(total) if hits[k]) / total)
    return float(np.mean(recalls)), float(np.mean(averages))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_against_loops_over_the_definition(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "TREE_POINTS", 10)
    points, labels = clusters(90, size)
    labels[0] = 77  # without a positive: left out
    recall, average = by_hand(points, labels)
    assert retrieval.recall_at_1(points, labels) == pytest.approx(recall, abs=1e-6)
    assert retrieval.map_at_r(points, labels) == pytest.approx(average, abs=1e-12)


@pytest.mark.parametrize("size", [2, 16])
def test_many_points_agree_with_the_library(size: int) -> None:
    points, labels = clusters(retrieval.TREE_POINTS + 100, size, classes=12)
    assert retrieval.recall_at_1(points, labels) == pytest.approx(
        evaluation.recall_at_k(points, labels).item(), abs=1e-6
    )
    assert retrieval.map_at_r(points, labels) == pytest.approx(
        evaluation.map_at_r(points, labels).item(), abs=1e-6
    )


def test_equal_points_are_at_chance_and_never_their_own_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "TREE_POINTS", 10)
    labels = torch.arange(400) % 4
    points = torch.ones(400, 2)
    # The nearest 99 are the first by index, a quarter of them of each class: 1/4 hits at precision 1/4.
    assert retrieval.map_at_r(points, labels) == pytest.approx(1 / 16, abs=0.01)
    pairs = torch.tensor([[0.0, 0.0], [0.0, 0.0], [5.0, 0.0], [5.0, 0.0]]).repeat(10, 1)
    apart = pairs + 100 * torch.arange(10).repeat_interleave(4).unsqueeze(1)
    unlike = torch.arange(40) % 2  # a point's twin has the other label
    assert retrieval.recall_at_1(apart, unlike) == 0.0


def test_no_positive_is_not_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "TREE_POINTS", 3)
    points = torch.randn(6, 2)
    assert math.isnan(retrieval.map_at_r(points, torch.arange(6)))
    assert math.isnan(retrieval.recall_at_1(points, torch.arange(6)))
