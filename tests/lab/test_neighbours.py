"""Neighbour shares against loops and scikit-learn."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness

from lab.neighbours import Neighbourhoods, ranks
from losslib.errors import ParameterError

RNG = np.random.default_rng(1)
EMBEDDINGS = RNG.normal(size=(300, 8))
POSITIONS = EMBEDDINGS[:, :2] + 0.3 * RNG.normal(size=(300, 2))


def nearest(points: np.ndarray, row: int, k: int) -> set[int]:
    squares = ((points - points[row]) ** 2).sum(axis=1)
    return set([j for j in np.argsort(squares, kind="stable").tolist() if j != row][:k])


@pytest.mark.parametrize("k", [1, 7, 40, 299])
def test_kept_share_is_the_loops(k: int) -> None:
    both = Neighbourhoods(EMBEDDINGS, POSITIONS)
    shares = [len(nearest(EMBEDDINGS, i, k) & nearest(POSITIONS, i, k)) / k for i in range(300)]
    assert both.kept_by_point(k) == pytest.approx(shares)
    assert both.kept()[k - 1] == pytest.approx(np.mean(shares))
    assert both.chance()[k - 1] == k / 299


@pytest.mark.parametrize("k", [1, 5, 50, 149])
def test_trust_is_scikit_learns(k: int) -> None:
    by_point = Neighbourhoods(EMBEDDINGS, POSITIONS).trust_by_point(k)
    expected = trustworthiness(EMBEDDINGS, POSITIONS, n_neighbors=k)
    assert by_point.mean() == pytest.approx(expected)
    assert by_point.std() > 0


def test_the_same_points_keep_all_and_random_ones_what_chance_gives() -> None:
    same = Neighbourhoods(EMBEDDINGS, 3 * EMBEDDINGS[:, ::-1] + 1)
    assert same.kept() == pytest.approx(1)
    assert same.trust_by_point(10) == pytest.approx(1)
    random = Neighbourhoods(EMBEDDINGS, RNG.normal(size=(300, 2)))
    assert random.kept()[19] == pytest.approx(random.chance()[19], abs=0.01)


def test_equal_points_rank_by_row_in_both() -> None:
    assert ranks(np.zeros((3, 2))).tolist() == [[0, 1, 2], [1, 0, 2], [1, 2, 0]]
    assert Neighbourhoods(np.zeros((9, 4)), np.zeros((9, 2))).kept().tolist() == [1] * 8


def test_what_is_out_of_range_is_refused() -> None:
    both = Neighbourhoods(EMBEDDINGS, POSITIONS)
    for k in (0, 300):
        with pytest.raises(ParameterError, match="from 1 to 299"):
            both.kept_by_point(k)
    with pytest.raises(ParameterError, match="from 1 to 149"):
        both.trust_by_point(150)
    with pytest.raises(ParameterError, match="same number"):
        Neighbourhoods(EMBEDDINGS, POSITIONS[:4])
