"""The losses that take their pairs or triplets as tensors, row by row."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib.distances import LpDistance
from losslib.losses import CosineEmbeddingLoss, TripletLoss
from tests.contract.inputs import rows
from tests.oracles.pair import cosine_embedding_of_rows
from tests.oracles.triplet import triplet_of_rows

TARGET = torch.tensor([1, -1, -1, 1, -1, 1])
RAW = ("LpDistance", {"normalize_embeddings": False})


def both(call: Any, expected: Any, *inputs: Tensor) -> None:
    """Value and every gradient of two functions of the same tensors."""
    results = []
    for function in (call, expected):
        leaves = [x.clone().requires_grad_() for x in inputs]
        value = function(*leaves)
        results.append((value.detach(), torch.autograd.grad(value, leaves)))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-9, atol=1e-12)
    for found, slope in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(found, slope, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("margin", [0.0, 0.3, -0.5])
def test_cosine_embedding(margin: float) -> None:
    both(
        lambda x1, x2: CosineEmbeddingLoss(margin=margin)(x1, x2, TARGET),
        lambda x1, x2: cosine_embedding_of_rows(x1, x2, TARGET, margin),
        rows(6, 300),
        rows(6, 301),
    )


@pytest.mark.parametrize("margin", [0.35, 1.5])
def test_triplet_by_cosine_distance(margin: float) -> None:
    both(
        TripletLoss(margin=margin),
        lambda a, p, n: triplet_of_rows(a, p, n, margin),
        rows(6, 302),
        rows(6, 303),
        rows(6, 304),
    )


def test_triplet_by_euclidean_distance() -> None:
    both(
        TripletLoss(margin=1.0, distance=LpDistance(normalize_embeddings=False)),
        lambda a, p, n: triplet_of_rows(a, p, n, 1.0, RAW),
        rows(6, 305),
        rows(6, 306),
        rows(6, 307),
    )


def test_a_zero_row_has_cosine_0_and_no_gradient() -> None:
    x1, x2 = rows(2, 308), rows(2, 309)
    x1[0] = 0
    leaf = x1.requires_grad_()
    value = CosineEmbeddingLoss()(leaf, x2, torch.tensor([1, 1]))
    value.backward()
    assert leaf.grad is not None
    assert leaf.grad[0].tolist() == [0.0] * 4
    assert float(value.detach()) == pytest.approx(
        float(cosine_embedding_of_rows(x1.detach(), x2, torch.tensor([1, 1])))
    )


def test_no_rows_give_0_with_a_gradient_path() -> None:
    empty = torch.zeros(0, 4, requires_grad=True)
    for value in (
        CosineEmbeddingLoss()(empty, empty, torch.zeros(0, dtype=torch.int64)),
        TripletLoss()(empty, empty, empty),
    ):
        assert float(value.detach()) == 0.0
        value.backward()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ((rows(3, 1), rows(4, 2), torch.tensor([1, -1, 1])), "CosineEmbeddingLoss"),
        ((rows(3, 1), rows(3, 2), torch.tensor([1, 0, 1])), "1 and -1"),
        ((rows(3, 1), rows(3, 2), torch.tensor([1, -1])), "target"),
        ((rows(3, 1), rows(3, 2), torch.tensor([[1], [-1], [1]])), "target"),
        ((rows(3, 1), rows(3, 2)), "target"),
    ],
)
def test_cosine_embedding_refuses_what_does_not_fit(inputs: tuple[Tensor, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CosineEmbeddingLoss()(*inputs)


@pytest.mark.parametrize(
    "inputs",
    [(rows(3, 1), rows(4, 2), rows(3, 3)), (rows(3, 1), rows(3, 2), rows(3, 3, 5)), (rows(3, 1), rows(3, 2))],
)
def test_triplet_refuses_what_does_not_fit(inputs: tuple[Tensor, ...]) -> None:
    with pytest.raises(ValueError, match="TripletLoss"):
        TripletLoss()(*inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rows_give_a_float32_value(dtype: torch.dtype) -> None:
    a, p, n = (rows(50, seed).to(dtype) for seed in (310, 311, 312))
    value = TripletLoss()(a, p, n)
    assert value.dtype == torch.float32
    assert float(value) == pytest.approx(float(triplet_of_rows(a, p, n)), rel=1e-5)
