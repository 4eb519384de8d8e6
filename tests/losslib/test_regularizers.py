"""Regularizers by hand, against pytorch-metric-learning, and at their limits."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning import regularizers as pml
from torch import Tensor

from losslib import catalog, regularizers
from losslib.errors import ParameterError, ShapeError
from losslib.losses import ContrastiveLoss
from losslib.reducers import MeanReducer, SumReducer
from losslib.regularizers import (
    CenterInvariantRegularizer,
    LpRegularizer,
    RegularFaceRegularizer,
    SparseCentersRegularizer,
    SphericalEmbeddingRegularizer,
    ZeroMeanRegularizer,
)

X = torch.tensor([[3.0, 4.0], [0.0, 1.0], [-2.0, 0.0], [6.0, -8.0]])
MAKERS: list[Any] = [
    LpRegularizer,
    ZeroMeanRegularizer,
    CenterInvariantRegularizer,
    SphericalEmbeddingRegularizer,
    RegularFaceRegularizer,
    lambda: SparseCentersRegularizer(2, 2),
]


def close(found: Tensor, expected: float) -> None:
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_by_hand() -> None:
    close(LpRegularizer()(X), (5 + 1 + 2 + 10) / 4)
    close(ZeroMeanRegularizer()(X), (7 + 1 + 2 + 2) / 4)
    # squared norms 25, 1, 4, 100 with mean 32.5
    squares = [(v - 32.5) ** 2 / 4 for v in (25, 1, 4, 100)]
    close(CenterInvariantRegularizer()(X), sum(squares) / 4)
    # norms 5, 1, 2, 10 with mean 4.5
    close(SphericalEmbeddingRegularizer()(X), (0.5**2 + 3.5**2 + 2.5**2 + 5.5**2) / 4)
    # cosines: rows 0 and 1: 0.8; row 2 with 1: 0 (with 0: -0.6, with 3: -0.6); row 3 with 0: -0.28
    close(RegularFaceRegularizer()(X), (0.8 + 0.8 + 0.0 - 0.28) / 4)
    # two classes of two: |(.6,.8) - (0,1)| and |(-1,0) - (.6,-.8)|, over 2 * 2 * 1
    close(SparseCentersRegularizer(2, 2)(X), (math.hypot(0.6, 0.2) + math.hypot(1.6, 0.8)) / 4)
    close(CenterInvariantRegularizer(reducer=SumReducer())(X), sum(squares))


def test_sparse_centers_of_one_class() -> None:
    unit = [torch.tensor([0.6, 0.8]), torch.tensor([0.0, 1.0]), torch.tensor([-1.0, 0.0])]
    apart = [float((unit[i] - unit[j]).norm()) for i, j in ((0, 1), (0, 2), (1, 2))]
    close(SparseCentersRegularizer(1, 3)(X[:3]), sum(apart) / 6)


def test_against_pml() -> None:
    x = torch.randn(12, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for name in ("ZeroMeanRegularizer", "CenterInvariantRegularizer", "RegularFaceRegularizer"):
        torch.testing.assert_close(getattr(regularizers, name)()(x), getattr(pml, name)()(x))
    ours, theirs = SparseCentersRegularizer(4, 3)(x), pml.SparseCentersRegularizer(4, 3)(x)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)


@pytest.mark.parametrize("make", MAKERS)
def test_gradients(make: Any) -> None:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64, requires_grad=True)
    regularizer = make().double()
    assert torch.autograd.gradcheck(regularizer, x)
    for given in (torch.zeros(4, 3), torch.ones(4, 3), torch.eye(4, 3)):
        leaf = given.clone().requires_grad_()
        regularizer(leaf).backward()
        assert bool(torch.isfinite(leaf.grad).all())


@pytest.mark.parametrize("make", MAKERS[:-1])
def test_few_rows(make: Any) -> None:
    for rows in (0, 1):
        x = torch.ones(rows, 3, requires_grad=True)
        value = make()(x)
        value.backward()
        assert bool(torch.isfinite(value))
        assert rows or float(value.detach()) == 0


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half(make: Any, dtype: torch.dtype) -> None:
    low = X.to(dtype)
    assert make()(low).dtype == torch.float32
    torch.testing.assert_close(make()(low), make()(low.float()))
    with torch.autocast("cpu", dtype=dtype):
        torch.testing.assert_close(make()(X), make()(X))


def test_spherical_embedding_draws_norms_to_their_mean() -> None:
    x = X.clone().requires_grad_()
    SphericalEmbeddingRegularizer()(x).backward()
    # d/dx of (n - m)^2 / N is 2 (n - m) / N along the row: the mean's own part cancels
    norms = X.norm(dim=1, keepdim=True)
    torch.testing.assert_close(x.grad, 2 * (norms - 4.5) / 4 * X / norms)


@pytest.mark.parametrize(
    ("regularizer", "size", "want"),
    [
        (LpRegularizer(), 1e20, 4.5e20),
        (LpRegularizer(p=4), 1e12, 1e12 * (337**0.25 + 1 + 2 + 5392**0.25) / 4),
        (LpRegularizer(power=2), 1e20, math.inf),
        (SphericalEmbeddingRegularizer(), 1e18, 12.25e36),
        (SphericalEmbeddingRegularizer(), 1e20, math.inf),
        (CenterInvariantRegularizer(), 1e8, 401.0625e32),
        (CenterInvariantRegularizer(), 1e20, math.inf),
    ],
)
def test_norms_whose_powers_single_precision_cannot_hold(regularizer: Any, size: float, want: float) -> None:
    close(regularizer(X * size), want)


def test_in_a_loss() -> None:
    y = torch.tensor([0, 0, 1, 1])
    loss = ContrastiveLoss(embedding_regularizer=ZeroMeanRegularizer(), embedding_reg_weight=0.5)
    torch.testing.assert_close(loss(X, y), ContrastiveLoss()(X, y) + 0.5 * 3.0)
    proxies = catalog.get("SoftTripleLoss")
    options = {"num_classes": 2, "embedding_size": 2, "centers_per_class": 3}
    torch.manual_seed(0)
    plain = proxies(**options)
    torch.manual_seed(0)
    held = proxies(**options, weight_regularizer=SparseCentersRegularizer(2, 3), weight_reg_weight=0.2)
    expected = plain(X, y) + 0.2 * SparseCentersRegularizer(2, 3)(plain.weight)
    torch.testing.assert_close(held(X, y), expected)


def test_bad_inputs() -> None:
    with pytest.raises(ShapeError, match=r"must have 6 rows .* got 4"):
        SparseCentersRegularizer(2, 3)(X)
    with pytest.raises(ParameterError, match="centers_per_class must be a whole number >= 2"):
        SparseCentersRegularizer(2, 1)
    with pytest.raises(TypeError, match="must be given num_classes and centers_per_class"):
        SparseCentersRegularizer()
    with pytest.raises(ValueError, match="has a divisor and needs DivisorReducer"):
        SparseCentersRegularizer(2, 2, reducer=MeanReducer())(X)
    with pytest.raises(ShapeError, match=r"embeddings must be \(N, D\)"):
        ZeroMeanRegularizer()(X[0])
