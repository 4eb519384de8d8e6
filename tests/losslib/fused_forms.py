"""Every loss with fused forms and every kind of input, for comparing these forms with the plain ones."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, reducers
from losslib.kernels import plain
from losslib.kernels.forms import kernels

ON_A_TIE = {"ContrastiveLoss", "MarginLoss"}  # a zero row is at distance 1, their default margin
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((cls.__name__, {}) for cls in kernels()),
    ("ContrastiveLoss", {"squared": True}),
    ("ContrastiveLoss", {"pos_margin": 0.3, "neg_margin": 1.3, "reducer": reducers.MeanReducer()}),
    ("ContrastiveLoss", {"pos_margin": 1, "neg_margin": 0, "distance": distances.CosineSimilarity()}),
    ("ContrastiveLoss", {"neg_margin": 3, "distance": distances.LpDistance(normalize_embeddings=False)}),
    ("ContrastiveLoss", {"neg_margin": 2, "distance": distances.LpDistance(power=2)}),
    ("ContrastiveLoss", {"reducer": reducers.SumReducer()}),
    ("ThresholdConsistentMarginLoss", {"margin_minus": 0.1, "lambda_plus": 0.5, "lambda_minus": 2}),
    ("MarginLoss", {"learn_beta": True, "nu": 0.1}),
    ("MarginLoss", {"learn_beta": True, "nu": 0.1, "num_classes": 5}),
    ("MarginLoss", {"beta": 0.3, "distance": distances.CosineSimilarity()}),
    ("TripletMarginLoss", {"margin": 0.5, "reducer": reducers.MeanReducer()}),
    ("TripletMarginLoss", {"distance": distances.CosineSimilarity(), "reducer": reducers.SumReducer()}),
    ("TripletMarginLoss", {"distance": distances.LpDistance(normalize_embeddings=False)}),
    ("SupConLoss", {"temperature": 0.01}),
    ("SupConLoss", {"reducer": reducers.MeanReducer()}),
    ("SupConLoss", {"distance": distances.DotProductSimilarity()}),
    ("SupConLoss", {"distance": distances.LpDistance()}),
    ("NTXentLoss", {"temperature": 0.01}),
    ("NTXentLoss", {"reducer": reducers.SumReducer()}),
    ("NTXentLoss", {"distance": distances.DotProductSimilarity(), "reducer": reducers.MeanReducer()}),
    ("DecoupledContrastiveLoss", {"sigma": 0.5}),
    ("DecoupledContrastiveLoss", {"distance": distances.DotProductSimilarity(), "temperature": 0.01}),
    ("DecoupledContrastiveLoss", {"sigma": 0.01, "temperature": 0.02}),
    ("MultiSimilarityLoss", {"alpha": 20, "beta": 300, "base": -0.5}),
    ("MultiSimilarityLoss", {"distance": distances.LpDistance(), "reducer": reducers.AvgNonZeroReducer()}),
    ("AngularLoss", {"alpha": 20, "reducer": reducers.SumReducer()}),
    ("AngularLoss", {"distance": distances.CosineSimilarity(), "reducer": reducers.AvgNonZeroReducer()}),
    ("GeneralizedLiftedStructureLoss", {"pos_margin": 0.4, "neg_margin": 0.7}),
    ("GeneralizedLiftedStructureLoss", {"distance": distances.CosineSimilarity(), "pos_margin": 1}),
    ("GeneralizedLiftedStructureLoss", {"distance": distances.LpDistance(normalize_embeddings=False)}),
    ("CircleLoss", {"gamma": 256}),
    ("CircleLoss", {"gamma": 10, "margin": 0.1, "reducer": reducers.MeanReducer()}),
]


def rows(count: int, seed: int, size: int = 6) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def classes(count: int, number: int, seed: int = 0) -> Tensor:
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    return (torch.arange(count) % number)[order]


def coincident(count: int) -> Tensor:
    """A class at one point, and one row at the place of a row of another class."""
    x, y = rows(count, 3), classes(count, 5)
    x[y == 2] = x[y == 2][0].clone()
    x[y == 1] = x[y == 3][0].clone()
    return x


def with_zeros(count: int) -> Tensor:
    x = rows(count, 4)
    x[::7] = 0
    return x


def near(count: int) -> Tensor:
    """Two tight groups, every class in both, so that nearly all distances are small."""
    return rows(2, 5).repeat(count // 2 + 1, 1)[:count] + 1e-3 * rows(count, 6)


def unbalanced(count: int) -> Tensor:
    y = torch.zeros(count, dtype=torch.int64)
    y[: count // 3] = 1
    y[:3] = torch.tensor([2, 3, 4])  # three rows without a partner
    return y[torch.randperm(count, generator=torch.Generator().manual_seed(1))]


def made(name: str, options: dict[str, Any]) -> Any:
    cls = next(cls for cls in kernels() if cls.__name__ == name)
    loss = cls(**options).double()
    if "beta" in cls.params and cls.__name__ == "MarginLoss":
        loss.beta = options.get("beta", 1.2)
    return loss


def call(loss: Any, x: Tensor, *others: Any) -> list[Tensor]:
    """Value and the gradients by embeddings, references and parameters."""
    leaves = [x.detach().clone().requires_grad_()]
    others = list(others)
    if len(others) > 2:
        others[2] = others[2].detach().clone().requires_grad_()
        leaves.append(others[2])
    leaves += list(loss.parameters())
    value = loss(leaves[0], *others)
    grads = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return [value.detach(), *grads]


INPUTS: dict[str, Any] = {
    "random": lambda n: (rows(n, 1), classes(n, 5)),
    "unbalanced": lambda n: (rows(n, 2), unbalanced(n)),
    "one class": lambda n: (rows(n, 3), torch.zeros(n, dtype=torch.int64)),
    "no positives": lambda n: (rows(n, 3), torch.arange(n)),
    "coincident": lambda n: (coincident(n), classes(n, 5)),
    "all at one point": lambda n: (rows(1, 1).repeat(n, 1), classes(n, 5)),
    "zero rows": lambda n: (with_zeros(n), classes(n, 5)),
    "near": lambda n: (near(n), classes(n, 5)),
    "far from the origin": lambda n: (rows(n, 7) + 1000, classes(n, 5)),
    "wide rows": lambda n: (rows(n, 8, 100), classes(n, 5)),
    "boolean labels": lambda n: (rows(n, 1), classes(n, 2).bool()),
    "floating labels": lambda n: (rows(n, 1), classes(n, 3) / 2),
    "references": lambda n: (rows(n // 2, 1), classes(n // 2, 5), None, rows(n, 9), classes(n, 6, 2)),
    "near references": lambda n: (near(n), classes(n, 5), None, near(n)[:7], classes(7, 5)),
    "itself as references": lambda n: (rows(n, 1), classes(n, 5), None, rows(n, 1), classes(n, 5)),
    "pairs listed": lambda n: (rows(n, 1), None, tuple(classes(n, n, s)[:9] for s in range(4))),
}
variants = pytest.mark.parametrize(
    ("name", "options"), VARIANTS, ids=lambda v: v if isinstance(v, str) else ""
)


def assert_equals_the_plain_form(loss: Any, x: Tensor, y: Tensor) -> None:
    fused = call(loss, x, y)
    with plain():
        expected = call(loss, x, y)
    torch.testing.assert_close(fused, expected, rtol=1e-10, atol=1e-12)


def takes(options: dict[str, Any], given: Any) -> bool:
    """Classes of their own need class numbers within range, and labels."""
    if options.get("num_classes") is None:
        return True
    labels = given[1]
    return labels is not None and not labels.is_floating_point() and int(labels.max()) < 5


def summed(options: dict[str, Any]) -> bool:
    """Whether rounding adds up over all terms."""
    return isinstance(options.get("reducer"), reducers.SumReducer)


def assert_equals_on_every_input(name: str, options: dict[str, Any], rows_: int) -> None:
    """Value and gradients of every kind of input of so many rows."""
    loss = made(name, options)
    for kind, make in INPUTS.items():
        given = make(rows_)
        if not takes(options, given) or (kind == "zero rows" and name in ON_A_TIE):
            continue
        fused = call(loss, *given)
        with plain():
            expected = call(loss, *given)
        for what, a, b in zip(("value", "x", "y or own", "own"), fused, expected, strict=False):
            scale = float(b.abs().max()) if b.numel() else 0.0
            limit = 1e-10 * max(scale, 10.0 if summed(options) else 1e-3)
            torch.testing.assert_close(
                a, b, rtol=1e-10, atol=limit, msg=lambda m, k=kind, w=what: f"{k} {w}: {m}"
            )
