"""Threshold consistency against loops over sorted distances, and by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import evaluation
from losslib.distances import CosineSimilarity, LpDistance
from losslib.errors import ParameterError, ShapeError
from losslib.evaluation import opis


def by_loops(d: list[list[float]], y: list[int], far: tuple[float, float], steps: int, c: float) -> float:
    rows = range(len(y))
    negatives = sorted(d[i][j] for i in rows for j in rows if y[i] != y[j])
    count = len(negatives)
    ends = [next(v for k, v in enumerate(negatives, 1) if k / count >= rate - 1e-12) for rate in far]
    total = 0.0
    for step in range(steps):
        limit = ends[0] + (ends[1] - ends[0]) * step / (steps - 1)
        utilities = []
        for k in sorted(set(y)):
            near = [d[i][j] for i in rows for j in rows if y[i] == k == y[j] and i != j]
            apart = [d[i][j] for i in rows for j in rows if y[i] == k != y[j]]
            if not near or not apart:
                continue
            psi = sum(v <= limit for v in near) / len(near)
            phi = sum(v > limit for v in apart) / len(apart)
            below = c * c * phi + psi
            utilities.append((1 + c * c) * phi * psi / below if below else 0.0)
        mean = sum(utilities) / len(utilities)
        variance = sum((u - mean) ** 2 for u in utilities) / len(utilities)
        total += variance * (0.5 if step in (0, steps - 1) else 1.0)
    return total / (steps - 1)


def clusters(seed: int, rows: int = 60, size: int = 4) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 6, (rows,), generator=source)
    centre = torch.randn(6, size, generator=source, dtype=torch.float64)
    width = torch.rand(6, 1, generator=source, dtype=torch.float64)
    return centre[y] + width[y] * torch.randn(rows, size, generator=source, dtype=torch.float64), y


@pytest.mark.parametrize("far", [(0.01, 0.1), (0.1, 0.9), (0.02, 0.98)])
@pytest.mark.parametrize("c", [1.0, 0.5])
@pytest.mark.parametrize("distance", [None, LpDistance(normalize_embeddings=False), CosineSimilarity()])
def test_against_loops(far: tuple[float, float], c: float, distance: Any) -> None:
    x, y = clusters(0)
    matrix = LpDistance()(x) if distance is None else distance(x)
    matrix = -matrix if distance is not None and distance.is_inverted else matrix
    expected = by_loops(matrix.tolist(), y.tolist(), far, 40, c)
    assert expected > 1e-4
    found = float(opis(x, y, far, thresholds=40, c=c, distance=distance))
    assert found == pytest.approx(expected, rel=0.03)  # thresholds are read from a histogram


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = clusters(1)
    whole = opis(x, y)
    monkeypatch.setattr("losslib.tiles._MIN_ROWS", 7)
    monkeypatch.setattr("losslib.tiles._TILE_ENTRIES", 1)
    torch.testing.assert_close(opis(x, y), whole, rtol=1e-12, atol=0)


def test_by_hand() -> None:
    """On a circle, where a distance is the chord of an angle."""
    angles = torch.tensor([0.0, 0.01, 2.2, 4.2], dtype=torch.float64)
    x = torch.stack([angles.cos(), angles.sin()], 1)
    y = torch.tensor([0, 0, 1, 1])
    # chords: positives 0.01 and 2 sin(1.0) = 1.683; negatives of 2.19, 2.2, 2.0832 and 2.0932 rad, that is
    # 1.778, 1.782, 1.727, 1.731: at rates from 1/4 to 1/2 the limit runs from 1.727 to 1.731, psi is 1 for
    # both classes, and phi the same for both (each negative pair counts for both): all alike
    assert float(opis(x, y, (0.25, 0.5), thresholds=5)) == pytest.approx(0.0, abs=1e-12)
    # a third class, one point beside the first
    angles = torch.tensor([0.0, 0.01, 2.2, 4.2, 0.3], dtype=torch.float64)
    x = torch.stack([angles.cos(), angles.sin()], 1)
    y = torch.tensor([0, 0, 1, 1, 2])
    # of 16 negative pairs 4 are near, of 0.29 and 0.3 rad, both ways: at rates from 1/16 to 4/16 the limit
    # runs from one chord to the other, and of the first class's 6 negative pairs 1 matches, then 2
    phi = [1 - 1 / 6, 1 - 2 / 6]
    first, last = (2 * p / (1 + p) for p in phi)
    # the second class: psi = 0, utility 0; the third has no positive pair and is left out
    expected = ((first / 2) ** 2 + (last / 2) ** 2) / 2
    assert float(opis(x, y, (1 / 16, 4 / 16), thresholds=2)) == pytest.approx(expected, rel=1e-9)


def test_alike_classes_are_consistent_and_unlike_ones_are_not() -> None:
    source = torch.Generator().manual_seed(0)
    y = torch.arange(80) % 4
    centre = torch.eye(4, 8, dtype=torch.float64)
    noise = torch.randn(80, 8, generator=source, dtype=torch.float64)
    alike = centre[y] + 0.1 * noise
    unlike = centre[y] + torch.tensor([0.02, 0.1, 0.3, 0.8])[y].unsqueeze(1) * noise
    assert float(opis(alike, y)) < 0.001
    assert float(opis(unlike, y)) > 0.02


def test_is_not_a_number_where_undefined() -> None:
    x, y = clusters(2)
    for labels in (y * 0, torch.arange(60)):
        assert bool(opis(x, labels).isnan())
    assert bool(opis(x[:1], y[:1]).isnan())
    broken = x.clone()
    broken[3, 0] = torch.nan
    assert bool(opis(broken, y).isnan())
    assert float(opis(torch.ones(6, 3), torch.arange(6) % 3)) == 0  # all at one point: all classes alike
    assert "opis" in evaluation.__all__


def test_precision_and_inputs() -> None:
    x, y = clusters(3)
    assert opis(x.half(), y).dtype == torch.float32
    torch.testing.assert_close(opis(x.float(), y).double(), opis(x, y), rtol=1e-2, atol=0)
    for far in ((0.1, 0.01), (0.1, 0.1), (-0.1, 0.5), (0.0, 0.5), (0.1, 1.5), (0.1,)):
        with pytest.raises(ParameterError, match="far must be two rates"):
            opis(x, y, far)
    with pytest.raises(ParameterError, match="thresholds must be a whole number >= 2"):
        opis(x, y, thresholds=1)
    with pytest.raises(ParameterError, match="c must be a number > 0"):
        opis(x, y, c=0)
    with pytest.raises(ShapeError, match="labels must have shape"):
        opis(x, y[:5])
