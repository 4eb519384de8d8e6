"""Evaluation against brute-force loops in float64, and values that can be worked out by hand."""

import math

import pytest
import torch

from losslib import evaluation
from losslib.errors import ParameterError, ShapeError


def brute_neighbours(x: torch.Tensor, i: int) -> list[int]:
    others = [j for j in range(len(x)) if j != i]
    return sorted(others, key=lambda j: math.dist(x[i].tolist(), x[j].tolist()))


def brute(x: torch.Tensor, y: torch.Tensor, k: int) -> tuple[float, float, float]:
    """recall@k, R-precision and MAP@R, by loops over rows and ranks."""
    recalls, precisions, averages = [], [], []
    labels = y.tolist()
    for i in range(len(x)):
        order = [labels[j] == labels[i] for j in brute_neighbours(x, i)]
        R = sum(order)
        if R == 0:
            continue
        recalls.append(float(any(order[:k])))
        precisions.append(sum(order[:R]) / R)
        averages.append(sum(sum(order[: r + 1]) / (r + 1) for r in range(R) if order[r]) / R)
    return tuple(sum(v) / len(v) for v in (recalls, precisions, averages))  # type: ignore[return-value]


def sample(size: int, count: int = 60, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(count, size, generator=generator, dtype=torch.float64)
    y = torch.randint(0, classes, (count,), generator=generator)
    y[0] = 99  # occurs once: left out of the means
    return x + 0.7 * torch.nn.functional.one_hot(y % 5, max(size, 5))[:, :size], y


@pytest.mark.parametrize("size", [1, 2, 3, 4, 17])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_retrieval_equals_loops(size: int, k: int, dtype: torch.dtype) -> None:
    x, y = sample(size)
    recall, precision, average = brute(x, y, k)
    assert evaluation.recall_at_k(x.to(dtype), y, k).item() == pytest.approx(recall, abs=1e-6)
    assert evaluation.r_precision(x.to(dtype), y).item() == pytest.approx(precision, abs=1e-6)
    assert evaluation.map_at_r(x.to(dtype), y).item() == pytest.approx(average, abs=1e-6)


def test_tiles_do_not_change_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = sample(6)
    whole = [f(x, y).item() for f in (evaluation.recall_at_k, evaluation.map_at_r)]
    spread = evaluation.uniformity(x).item()
    monkeypatch.setattr("losslib.tiles._TILE_ENTRIES", 1)
    monkeypatch.setattr("losslib.tiles._MIN_ROWS", 7)
    assert [f(x, y).item() for f in (evaluation.recall_at_k, evaluation.map_at_r)] == whole
    assert evaluation.uniformity(x).item() == pytest.approx(spread, abs=1e-12)


def test_map_at_r_by_hand() -> None:
    # Seen from 0: 1 (same), 2 (other), 4 (same): R = 2, ranks 1 and 2 hold hit, miss: AP = 1/2 * 1 = 0.5.
    x = torch.tensor([[0.0], [1.0], [2.0], [4.0]], dtype=torch.float64)
    y = torch.tensor([7, 7, 1, 7])
    # from 1: 0 and 2 tie at distance 1, broken by index: hit, miss: 0.5; from 4: 2 (miss), 1 (hit): 1/2 * 1/2
    assert evaluation.map_at_r(x, y).item() == pytest.approx((0.5 + 0.5 + 0.25) / 3)
    assert evaluation.recall_at_k(x, y).item() == pytest.approx(2 / 3)


def test_near_duplicates_far_from_the_origin_are_told_apart() -> None:
    # pairs 1e-3 apart at 1,000 from the origin: the plain |a|^2 + |b|^2 - 2ab form in float32 sees only noise
    x = torch.tensor([[1000.0, 0.0], [1000.001, 0.0], [1000.0, 1.0], [1000.001, 1.0]]).repeat(1, 1)
    y = torch.tensor([0, 0, 1, 1])
    assert evaluation.recall_at_k(x, y).item() == 1.0


def test_a_similarity_counts_larger_as_nearer() -> None:
    class Dot:
        is_inverted = True

        def __call__(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a @ b.T

    x = torch.tensor([[1.0, 0.0], [5.0, 0.1], [0.0, 1.0], [0.1, 5.0]])
    y = torch.tensor([0, 0, 1, 1])
    assert evaluation.recall_at_k(x, y, distance=Dot()).item() == 1.0
    assert evaluation.recall_at_k(x, y).item() == 0.5  # Euclidean: both short rows are each other's nearest


def test_alignment_and_uniformity_equal_loops() -> None:
    x, y = sample(4)
    unit = x / x.norm(dim=1, keepdim=True)
    pairs = [(i, j) for i in range(60) for j in range(60) if i != j]
    square = {(i, j): math.dist(unit[i].tolist(), unit[j].tolist()) ** 2 for i, j in pairs}
    same = [square[p] for p in pairs if y[p[0]] == y[p[1]]]
    assert evaluation.alignment(3 * x, y).item() == pytest.approx(sum(same) / len(same), rel=1e-10)
    potential = sum(math.exp(-2 * d) for d in square.values()) / len(pairs)
    assert evaluation.uniformity(3 * x).item() == pytest.approx(math.log(potential), rel=1e-10)


def test_collapse_of_shapes_known_by_hand() -> None:
    square = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    even = evaluation.collapse(square)
    assert even.spread.item() == pytest.approx(1.0)  # deviation 1 in both dimensions
    assert even.effective_rank.item() == pytest.approx(2.0)
    assert even.mean_cosine.item() == pytest.approx(-1 / 3)  # four unit vectors that add up to zero: -1/(4-1)
    line = evaluation.collapse(torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))
    assert line.effective_rank.item() == pytest.approx(1.0)
    assert line.mean_cosine.item() == pytest.approx(1.0)
    point = evaluation.collapse(torch.full((9, 4), 0.5))
    assert point.spread.item() == 0.0
    assert point.effective_rank.item() == 1.0
    # singular values 2 and 1 (times a constant): entropy of (2/3, 1/3)
    ellipse = evaluation.collapse(square * torch.tensor([2.0, 1.0]))
    entropy = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert ellipse.effective_rank.item() == pytest.approx(math.exp(entropy))


def test_zero_vectors_have_no_part_in_the_mean_cosine() -> None:
    mixed = torch.tensor([[3.0, 0.0], [0.0, 0.0], [0.0, 2.0], [0.0, 0.0], [0.0, 5.0]])
    # cosines of the three others: 0, 0 and 1
    assert evaluation.collapse(mixed).mean_cosine.item() == pytest.approx(1 / 3)
    for rows in (torch.zeros(4, 2), mixed[:2], mixed[:1]):
        assert math.isnan(evaluation.collapse(rows).mean_cosine.item())
    assert evaluation.collapse(torch.zeros(4, 2)).spread.item() == 0.0


def test_total_collapse_scores_chance_not_perfection() -> None:
    y = torch.arange(10).repeat_interleave(20)
    for size in (2, 8):
        assert evaluation.recall_at_k(torch.ones(200, size), y).item() <= 0.2
    assert evaluation.uniformity(torch.ones(200, 8)).item() == pytest.approx(0.0, abs=1e-6)
    assert evaluation.alignment(torch.ones(200, 8), y).item() == pytest.approx(0.0, abs=1e-6)


def test_nothing_to_measure_is_nan_and_not_finite_is_nan() -> None:
    y = torch.arange(4)
    x = torch.randn(4, 3)
    for function in (
        evaluation.recall_at_k,
        evaluation.map_at_r,
        evaluation.r_precision,
        evaluation.alignment,
    ):
        assert math.isnan(function(x, y).item())
    broken = torch.tensor([[1.0, math.nan], [0.0, 1.0], [2.0, 1.0]])
    same = torch.tensor([0, 0, 0])
    assert math.isnan(evaluation.recall_at_k(broken, same).item())
    assert math.isnan(evaluation.map_at_r(broken, same).item())
    assert all(math.isnan(value.item()) for value in evaluation.collapse(broken))
    assert math.isnan(evaluation.uniformity(torch.ones(1, 2)).item())


def test_half_precision_is_measured_in_single() -> None:
    x, y = sample(8)
    half = evaluation.recall_at_k(x.half(), y)
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(evaluation.recall_at_k(x.half().double(), y).item(), abs=0.04)


def test_wrong_shapes_and_k_are_refused() -> None:
    x, y = torch.randn(6, 2), torch.zeros(6, dtype=torch.int64)
    with pytest.raises(ShapeError, match=r"labels must have shape \(6,\), got \(6, 1\)"):
        evaluation.recall_at_k(x, y.unsqueeze(1))
    with pytest.raises(ShapeError, match=r"shape \(N, D\)"):
        evaluation.alignment(x[0], y)
    for k in (0, 6, True, 1.5):
        with pytest.raises(ParameterError, match="k must be a whole number from 1 to 5"):
            evaluation.recall_at_k(x, y, k=k)  # type: ignore[arg-type]
