"""Losses against proxies in one pass: against the plain form, whose values the contract tests hold."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, losses, reducers
from losslib.kernels import explain, plain

SIZES = {"num_classes": 5, "embedding_size": 48, "class_counts": (3, 9, 2, 40, 1)}
EUCLIDEAN = distances.LpDistance()
SQUARED = distances.LpDistance(power=2, normalize_embeddings=False)
CASES = [
    (losses.NormalizedSoftmaxLoss, {}),
    (losses.NormalizedSoftmaxLoss, {"distance": EUCLIDEAN, "reducer": reducers.SumReducer()}),
    (losses.ProxyNCALoss, {}),
    (losses.ProxyNCALoss, {"distance": SQUARED, "softmax_scale": 0.1}),
    (losses.CosFaceLoss, {"reducer": reducers.AvgNonZeroReducer()}),
    (losses.ArcFaceLoss, {"margin": 2.0}),
    (losses.SubCenterArcFaceLoss, {"scale": 4.0}),
    (losses.DynamicArcFaceLoss, {"sub_centers": 2}),
    (losses.SoftTripleLoss, {"centers_per_class": 3}),
    (losses.P2SGradLoss, {}),
    (losses.ProxyAnchorLoss, {}),
    (losses.ProxyAnchorLoss, {"distance": EUCLIDEAN, "alpha": 100.0}),
]
every = pytest.mark.parametrize(
    ("cls", "options"), CASES, ids=[f"{cls.__name__}-{'-'.join(options)}" for cls, options in CASES]
)


def made(cls: Any, options: dict[str, Any], dtype: torch.dtype = torch.float64) -> Any:
    torch.manual_seed(3)
    return cls(**{name: SIZES[name] for name in cls.required}, **options).to(dtype)


def batch(rows: int = 30) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 48, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, torch.arange(rows) % 4  # a class is absent


def found(loss: Any, x: Tensor, y: Tensor, create_graph: bool = False) -> tuple[Tensor, ...]:
    leaf = x.clone().requires_grad_()
    value = loss(leaf, y)
    grads = torch.autograd.grad(value, [leaf, loss.weight], create_graph=create_graph)
    if create_graph:
        total = grads[0].square().sum() + grads[1].square().sum()
        return torch.autograd.grad(total, [leaf, loss.weight])
    return value.detach(), *grads


@pytest.mark.parametrize("create_graph", [False, True], ids=["first", "second"])
@every
def test_equals_the_plain_form(cls: Any, options: dict[str, Any], create_graph: bool) -> None:
    loss, (x, y) = made(cls, options), batch()
    assert ": dense form, because" in explain(loss, len(x))
    with plain():
        expected = found(loss, x, y, create_graph)
    for got, wanted in zip(found(loss, x, y, create_graph), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 1e-18, 1e18])
@every
def test_single_precision_at_any_length_of_the_rows(cls: Any, options: dict[str, Any], scale: float) -> None:
    if options.get("distance") is SQUARED:
        scale = 1.0  # not normalised
    loss, (x, y) = made(cls, options), batch()
    with plain():
        value, gradient, of_weight = found(loss, x, y)
    single = found(loss.float(), (x * scale).float(), y)
    assert single[0].item() == pytest.approx(value.item(), rel=1e-5)
    assert (single[1].double() * scale - gradient).norm() <= 1e-4 * gradient.norm()
    assert (single[2].double() - of_weight).norm() <= 1e-4 * of_weight.norm()


@every
def test_a_zero_row_passes_no_gradient(cls: Any, options: dict[str, Any]) -> None:
    if options.get("distance") is SQUARED:
        return
    loss, (x, y) = made(cls, options, torch.float32), batch()
    x[2] = 0
    value, gradient, of_weight = found(loss, x.float(), y)
    assert not gradient[2].any()
    assert gradient[1].any()
    assert value.isfinite()
    assert of_weight.isfinite().all()


def test_what_takes_the_plain_form() -> None:
    loss, (x, y) = made(losses.CosFaceLoss, {}), batch()
    with plain():
        assert explain(loss, 9) == "CosFaceLoss: plain form, because losslib.kernels.plain() is in force"
    assert "no fused form" in explain(made(losses.LargeMarginSoftmaxLoss, {}), 9)
    loss.reducer = reducers.ThresholdReducer(low=0.1)
    assert "ThresholdReducer needs the terms" in explain(loss, 9)
    loss.reducer = reducers.MeanReducer()
    rows = torch.arange(10)
    # a tuple that lists some rows: the others weigh nothing, and the mean stays over all
    listed = loss(x, y, (rows, rows, rows))
    with plain():
        assert listed.item() == pytest.approx(loss(x[:10], y[:10]).item() / 3, rel=1e-12)
