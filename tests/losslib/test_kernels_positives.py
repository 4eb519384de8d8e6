"""The parts of the blocked forms: positive pairs class by class, and the search among thresholds."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, losses
from losslib.kernels import plain, positives
from losslib.kernels.scratch import lease
from losslib.kernels.sorted_rows import SortedRows
from losslib.kernels.threshold_search import WHOLE, search

SIZES = [[5, 5, 5, 5], [1, 1, 1], [12, 9, 7, 3, 2, 1, 1], [40, 3, 38, 2], [30], [1, 2, 1, 2, 2]]


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sorted_rows(sizes: list[int]) -> tuple[SortedRows, Tensor]:
    labels = torch.cat([torch.full((size,), number) for number, size in enumerate(sizes)])
    x = torch.randn(len(labels), 4, dtype=torch.float64, generator=generator(1))
    return SortedRows(x, labels, distances.DotProductSimilarity(normalize_embeddings=False)), labels


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("entries", "least"), [(1 << 16, 64), (60, 4)])  # and classes in parts
def test_every_positive_pair_once(
    sizes: list[int], entries: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(positives, "_ENTRIES", entries)
    monkeypatch.setattr(positives, "_LEAST", least)
    rows, labels = sorted_rows(sizes)
    x = rows.rows.unit
    pairs = (labels.unsqueeze(1) == labels).double().fill_diagonal_(0)
    slopes = pairs * torch.randn(len(x), 1, dtype=torch.float64, generator=generator(2))  # of each anchor
    numbers, products, pulls = torch.zeros(len(x)), torch.zeros(len(x)), torch.zeros(len(x), 4)
    numbers, products, pulls = numbers.double(), products.double(), pulls.double()
    for some in rows.positives():
        mask = some.mask(x).expand(some.shape)
        some.add(numbers, mask.sum(2))
        some.add(products, (some.products(x, 2.0, 1.0) * mask).sum(2))
        some.pull(pulls, x, mask * some.anchors(slopes.sum(1) / pairs.sum(1).clamp_min(1)).unsqueeze(2))
    torch.testing.assert_close(numbers, pairs.sum(1))
    torch.testing.assert_close(products, (pairs * (2 * x @ x.t() + 1)).sum(1))
    torch.testing.assert_close(pulls, (slopes + slopes.t()) @ x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("number", [3, 4, 7, 11, 63])
def test_thresholds_reached_and_reaching(number: int, dtype: torch.dtype) -> None:
    apart = torch.randint(0, 9, (50, 6), generator=generator(3)).to(dtype)  # with ties, which reach
    thresholds = torch.randint(0, 9, (number, 6), generator=generator(4)).to(dtype).sort(0)[0]
    found = torch.empty_like(apart)
    with lease():
        counts = search(apart, thresholds.view(WHOLE[dtype]), found)
    below = (apart.unsqueeze(1) < thresholds).to(dtype)
    assert torch.equal(-found, below.sum(1))
    assert torch.equal(counts, below.sum(0))


def both(loss: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Value and gradient in single precision as they come, and in double precision by the plain form."""
    single, double = x.clone().requires_grad_(), x.double().requires_grad_()
    value = loss(single, y)
    value.backward()
    with plain():
        exact = loss(double, y)
    exact.backward()
    assert single.grad is not None
    assert double.grad is not None
    return value, exact, single.grad.double(), double.grad


@pytest.mark.parametrize("spread", [0.1, 1e-3, 1e-5])
@pytest.mark.parametrize(
    "loss",
    [losses.ContrastiveLoss(), losses.ThresholdConsistentMarginLoss(), losses.TripletMarginLoss()],
    ids=lambda loss: type(loss).__name__,
)
def test_classes_drawn_together_in_single_precision(loss: Any, spread: float) -> None:
    y = torch.randint(0, 9, (400,), generator=generator(5))
    x = torch.randn(9, 64, generator=generator(6))[y] + spread * torch.randn(400, 64, generator=generator(7))
    value, exact, grad, expected = both(loss, x, y)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5, abs=1e-7)
    assert (grad - expected).norm() <= 1e-4 * expected.norm()


def test_a_row_is_no_negative_of_itself_at_any_size() -> None:
    loss = losses.MarginLoss(
        triplets_per_anchor="all", beta=10.0, distance=distances.LpDistance(normalize_embeddings=False)
    )
    y = torch.randint(0, 9, (400,), generator=generator(8))
    value, exact, grad, expected = both(loss, 1e25 * torch.randn(400, 64, generator=generator(9)), y)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    assert (grad - expected).norm() <= 1e-4 * expected.norm()
