"""Sizes at which the library sums in another way: against dense cubes of triplets, written here."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances
from tests.contract.registered import build

SIZES = (33, 65, 130, 190)


def batch(count: int, classes: int = 7, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Rows with classes of uneven size, some of a single row, and a few coincident rows."""
    generator = torch.Generator().manual_seed(1000 * count + seed)
    x = torch.randn(count, 5, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, classes, (count,), generator=generator) ** 2 // 3
    labels[:3] = torch.tensor([100, 101, 102])
    x[10] = x[5]
    x[11] = x[6]
    labels[11] = labels[6]
    return x, labels


def distance_matrix(x: Tensor, y: Tensor) -> Tensor:
    """Euclidean distances of normalised rows by direct differences; no gradient where rows coincide."""
    u, v = torch.nn.functional.normalize(x, dim=1), torch.nn.functional.normalize(y, dim=1)
    squared = ((u[:, None] - v[None]) ** 2).sum(2)
    coincident = squared == 0
    return torch.where(coincident, 0.0, torch.where(coincident, 1.0, squared).sqrt())


def cube(labels: Tensor, other: Tensor, same_batch: bool) -> Tensor:
    """Mask (B, R, R) of the triplets."""
    same = labels[:, None] == other[None, :]
    positive = same & ~torch.eye(len(labels), dtype=torch.bool) if same_batch else same
    return positive[:, :, None] & ~same[:, None, :]


def triplet_margin(d: Tensor, pn: Tensor, mask: Tensor, margin: float, swap: bool, smooth: bool) -> Tensor:
    far = d[:, None, :].expand_as(mask)
    if swap:
        far = torch.minimum(far, pn[None])
    violation = d[:, :, None] - far + margin
    values = (torch.nn.functional.softplus(violation, threshold=500) if smooth else violation.relu())[mask]
    return values[values > 0].mean()


def margin_loss(d: Tensor, mask: Tensor) -> Tensor:
    near = (d - 1.2 + 0.2).relu()[:, :, None].expand_as(mask)[mask]
    far = (1.2 - d + 0.2).relu()[:, None, :].expand_as(mask)[mask]
    return (near + far).sum() / ((near > 0).sum() + (far > 0).sum())


CASES: list[tuple[str, dict[str, Any]]] = [
    ("TripletMarginLoss", {}),
    ("TripletMarginLoss", {"margin": 0.0}),
    ("TripletMarginLoss", {"swap": True}),
    ("TripletMarginLoss", {"smooth_loss": True}),
    ("TripletMarginLoss", {"swap": True, "smooth_loss": True}),
    ("MarginLoss", {}),
]


def expected(name: str, options: dict[str, Any], d: Tensor, pn: Tensor, mask: Tensor) -> Tensor:
    if name == "MarginLoss":
        return margin_loss(d, mask)
    settings = {"margin": 0.2, "swap": False, "smooth_loss": False, **options}
    return triplet_margin(d, pn, mask, settings["margin"], settings["swap"], settings["smooth_loss"])


def compare(got: Tensor, want: Tensor, leaves: list[Tensor], rtol: float) -> None:
    torch.testing.assert_close(got, want.to(got.dtype), rtol=rtol, atol=0)
    slopes = torch.autograd.grad(got, leaves), torch.autograd.grad(want, leaves)
    for found, slope in zip(*slopes, strict=True):
        scale = float(slope.abs().max())
        torch.testing.assert_close(found, slope, rtol=0, atol=max(100 * rtol, 1e-8) * scale)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("name", "options"), CASES)
def test_all_triplets_at_every_size(name: str, options: dict[str, Any], size: int) -> None:
    x, labels = batch(size)
    leaf = x.requires_grad_()
    d = distance_matrix(leaf, leaf)
    want = expected(name, options, d, d, cube(labels, labels, same_batch=True))
    compare(build(name, options)(leaf, labels), want, [leaf], 1e-10)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_all_triplets_with_a_reference(name: str, options: dict[str, Any]) -> None:
    (x, labels), (r, other) = batch(40), batch(150, seed=1)
    leaves = [x.requires_grad_(), r.requires_grad_()]
    d, pn = distance_matrix(x, r), distance_matrix(r, r)
    want = expected(name, options, d, pn, cube(labels, other, same_batch=False))
    got = build(name, options)(x, labels, ref_emb=r, ref_labels=other)
    compare(got, want, leaves, 1e-10)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_all_triplets_in_single_precision(name: str, options: dict[str, Any]) -> None:
    x, labels = batch(130)
    leaf = x.float().requires_grad_()
    d = distance_matrix(leaf.double(), leaf.double())
    want = expected(name, options, d, d, cube(labels, labels, same_batch=True))
    # a triplet within rounding of the margin may count on one side only: hence the tolerance of its gradient
    compare(build(name, options).float()(leaf, labels), want, [leaf], 2e-5)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_one_large_class_and_a_crowd_of_single_rows(name: str, options: dict[str, Any]) -> None:
    x, _ = batch(90, seed=2)
    labels = torch.cat([torch.zeros(60, dtype=torch.int64), torch.arange(1, 31)])
    leaf = x.requires_grad_()
    d = distance_matrix(leaf, leaf)
    want = expected(name, options, d, d, cube(labels, labels, same_batch=True))
    compare(build(name, options)(leaf, labels), want, [leaf], 1e-10)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_single_precision_distances_are_right_at_every_size_and_scale(
    size: int, normalise: bool, offset: float
) -> None:
    generator = torch.Generator().manual_seed(size)
    x = torch.randn(size, 24, generator=generator) + offset
    x[3] = x[2]
    x[5] = x[4] + 1e-3 * torch.randn(24, generator=generator)
    found = distances.LpDistance(normalize_embeddings=normalise)(x).double()
    exact = x.double()
    exact = torch.nn.functional.normalize(exact, dim=1) if normalise else exact
    exact = (exact[:, None] - exact[None]).norm(dim=2)
    assert float(found[2, 3]) == 0.0
    assert bool((found.diagonal() == 0).all())
    assert float((found - exact).abs().max() / exact.max()) < 1e-6
    assert float(found[4, 5]) == pytest.approx(float(exact[4, 5]), rel=2e-6)
