"""Losses summed over blocks of triplets or of ranks, in several small blocks, against loops in float64."""

import math
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from losslib import block_triplets, losses, ranks, triplet_weights
from losslib.kernels import plain
from losslib.pair_matrix import Pairs
from losslib.triplet_weights import TripletDifferences


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_BLOCK", 40)
    monkeypatch.setattr(block_triplets, "_QUICK", 40)
    monkeypatch.setattr(triplet_weights, "_BLOCK", 1)


def batch() -> tuple[Tensor, Tensor]:
    x = torch.randn(15, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[5] = x[6]  # equal rows of two classes
    return x, torch.tensor([7] * 6 + [1, 2, 3] * 2 + [8, 9, 9])


def unit(x: Tensor) -> Tensor:
    return x / x.norm(dim=1, keepdim=True)


def triplets(y: Tensor) -> list[tuple[int, int, int]]:
    rows = range(len(y))
    positives = [(a, p) for a in rows for p in rows if a != p and y[a] == y[p]]
    return [(a, p, n) for a, p in positives for n in rows if y[a] != y[n]]


def assert_same(loss: object, expected: object) -> None:
    x, y = batch()
    given, plain = x.clone().requires_grad_(), x.clone().requires_grad_()
    value, wanted = loss(given, y), expected(plain, y)  # type: ignore[operator]
    assert value.item() == pytest.approx(wanted.item(), rel=1e-10)
    (found,) = torch.autograd.grad(value, given, create_graph=True)
    (gradient,) = torch.autograd.grad(wanted, plain, create_graph=True)
    torch.testing.assert_close(found, gradient, rtol=1e-9, atol=1e-12)
    second = [
        torch.autograd.grad(g.square().sum(), leaf)[0] for g, leaf in ((found, given), (gradient, plain))
    ]
    torch.testing.assert_close(*second, rtol=1e-8, atol=1e-11)
    (once,) = torch.autograd.grad(loss(given, y), given)  # type: ignore[operator]
    torch.testing.assert_close(once, gradient.detach(), rtol=1e-9, atol=1e-12)


def test_selectively_contrastive() -> None:
    def expected(x: Tensor, y: Tensor) -> Tensor:
        s, values = unit(x) @ unit(x).t(), []
        for a, p, n in triplets(y):
            hard = s[a, n] > s[a, p] + 1e-12
            values.append(2 * s[a, n] if hard else torch.log1p(torch.exp((s[a, n] - s[a, p]) / 0.2)))
        return torch.stack(values).mean()

    assert_same(losses.SelectivelyContrastiveTripletLoss(hard_weight=2.0, temperature=0.2), expected)


@pytest.mark.parametrize("variant", ["O", "Iu"])
def test_pnp(variant: str) -> None:
    def expected(x: Tensor, y: Tensor) -> Tensor:
        s, anchors = unit(x) @ unit(x).t(), []
        for a in range(len(y)):
            items = [i for i in range(len(y)) if y[i] == y[a]]
            before = [
                sum(torch.sigmoid((s[a, n] - s[a, i]) / 0.1) for n in range(len(y)) if y[n] != y[a])
                for i in items
            ]
            values = [b if variant == "O" else (1 + b) * torch.log(1 + b) for b in before]
            if len(items) > 1:
                anchors.append(torch.stack(values).mean())
        return torch.stack(anchors).mean()

    assert_same(losses.PNPLoss(anneal=0.1, variant=variant), expected)


def test_smooth_ap() -> None:
    def expected(x: Tensor, y: Tensor) -> Tensor:
        s, anchors = unit(x) @ unit(x).t(), []
        for a in range(len(y)):
            items = [i for i in range(len(y)) if y[i] == y[a]]

            def rank(i: int, among: list[int], a: int = a) -> Tensor:
                return sum(
                    (torch.sigmoid((s[a, j] - s[a, i]) / 0.1) for j in among if j != i), s.new_ones(())
                )

            shares = [rank(i, items) / rank(i, list(range(len(y)))) for i in items]
            if len(items) > 1:
                anchors.append(1 - torch.stack(shares).mean())
        return torch.stack(anchors).mean()

    assert_same(losses.SmoothAPLoss(temperature=0.1), expected)


@pytest.mark.parametrize(("low", "bins"), [(-2.0, 10), (-0.5, 4), (-1.0, 1)])
@pytest.mark.parametrize("listed", [False, True])
def test_differences_in_bins(low: float, bins: int, listed: bool) -> None:
    x, y = batch()
    every = triplets(y)
    loss = losses.DynamicSoftMarginLoss()
    given = tuple(torch.tensor(index) for index in zip(*every, strict=True)) if listed else None
    read = loss.read(x, y, given, None, None)
    pairs = Pairs(loss.distance(x), read, loss.distance)
    width, d = -2 * low / bins, pairs.values
    table = torch.rand(bins + 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64).tolist()
    nodes, weights = [0.0] * (bins + 1), torch.zeros_like(d)
    for a, p, n in every:
        place = (float(d[a, p] - d[a, n]) - low) / width
        below = min(max(math.floor(place + 1e-12), 0), bins - 1)
        share = min(max(place - below, 0.0), 1.0)
        nodes[below] += 1 - share
        nodes[below + 1] += share
        weights[a, p] += table[below]
        weights[a, n] -= table[below]
    found = TripletDifferences(pairs, low, width, bins)
    torch.testing.assert_close(found.histogram(), torch.tensor(nodes, dtype=torch.float64))
    torch.testing.assert_close(found.weights(torch.tensor(table, dtype=torch.float64)), weights)


def test_the_dynamic_soft_margin_in_one_pass_is_the_plain_one() -> None:
    x, y = batch()
    found = []
    for context in (nullcontext(), plain()):
        loss, leaf = losses.DynamicSoftMarginLoss(), x.clone().requires_grad_()
        with context:
            loss(x.flip(0), y)  # leaves a memory
            value = loss(leaf, y)
            (gradient,) = torch.autograd.grad(value, leaf, create_graph=True)
            (second,) = torch.autograd.grad(gradient.square().sum(), leaf)
        found.append((value.detach(), gradient.detach(), second, loss.histogram.clone()))
    for quick, slow in zip(*found, strict=True):
        torch.testing.assert_close(quick, slow, rtol=1e-10, atol=1e-13)
