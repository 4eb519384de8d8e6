"""Fused forms against the plain ones: every loss that has them, every kind of input, value and gradients."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, losses
from losslib.kernels import blocked_angular, blocked_softmax, explain, plain, run
from losslib.kernels.blocked_softmax import SPAN
from losslib.kernels.forms import kernels
from tests.losslib.fused_forms import (
    assert_equals_on_every_input,
    assert_equals_the_plain_form,
    call,
    classes,
    made,
    rows,
    summed,
    unbalanced,
    variants,
)

ROWS = 200  # more than one block of rows


@pytest.fixture(autouse=True)
def unordered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes of one size, too, in the form that is for all, of which others are in test_kernels_even."""
    for cls, kernel in kernels().items():
        monkeypatch.setitem(kernels(), cls, replace(kernel, even=lambda loss: range(0)))


@pytest.fixture
def early_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks from 16 rows on, which are otherwise for batches too slow to try in every way."""
    for cls, kernel in kernels().items():
        monkeypatch.setitem(kernels(), cls, replace(kernel, blocked_from=16))


@pytest.mark.usefixtures("early_blocks")
@variants
@pytest.mark.parametrize("rows_", [12, ROWS])
def test_equals_the_plain_form(name: str, options: dict[str, Any], rows_: int) -> None:
    assert_equals_on_every_input(name, options, rows_)


@pytest.mark.usefixtures("early_blocks")
@variants
def test_a_memory_that_holds_the_batch_itself(name: str, options: dict[str, Any]) -> None:
    memory = losses.CrossBatchMemory(made(name, options), 40, 250)
    memory(rows(150, 2, 40), classes(150, 5))
    held = memory.remembered()
    found = []
    for context in (nullcontext(), plain()):
        memory.recall(held)
        with context:
            found.append(call(memory, rows(140, 1, 40), classes(140, 5)))  # over the end of the ring
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12 if not summed(options) else 1e-9)


softmax_losses = pytest.mark.parametrize(
    "name",
    [
        "SupConLoss",
        "NTXentLoss",
        "DecoupledContrastiveLoss",
        "MultiSimilarityLoss",
        "CircleLoss",
        "NCALoss",
        "InstanceLoss",
    ],
)


@softmax_losses
def test_tiles_computed_again_for_the_gradient(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_softmax, "STORED", 300)  # in place of 4096 rows
    monkeypatch.setattr(blocked_softmax, "_WIDE", 260)
    loss = made(name, {})
    for y in (classes(600, 5), unbalanced(600), classes(600, 300)):
        x = rows(600, 1, 40)
        assert_equals_the_plain_form(loss, x, y)


@softmax_losses
def test_pulls_of_rows_near_each_other(name: str) -> None:
    """In the order of labels, all of one sign come before those of the other, with which they cancel."""
    x, y = (rows(1, 1, 64) + 0.01 * rows(700, 2, 64)).float(), classes(700, 2)
    assert "blocked form" in explain(made(name, {}), 700)
    with plain():
        exact = call(made(name, {}), x.double(), y)
    single = call(made(name, {}).float(), x, y)
    assert (single[1] - exact[1]).norm() <= 1e-4 * exact[1].norm()


@pytest.mark.parametrize("entries", [1, 5_000, 40_000])
def test_angular_by_tiles_of_classes(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_angular, "_ENTRIES", entries)  # in place of half a million
    loss = made("AngularLoss", {})
    assert explain(loss, 300).startswith("AngularLoss: blocked form")
    for y in (classes(300, 5), unbalanced(300), classes(300, 150)):
        x = rows(300, 1, 10)
        assert_equals_the_plain_form(loss, x, y)


@pytest.mark.parametrize("number", [2, 12, 100])
@pytest.mark.parametrize(
    "distance", [distances.LpDistance(), distances.CosineSimilarity()], ids=["l2", "cos"]
)
def test_triplets_of_few_and_of_many_positives(number: int, distance: distances.Distance) -> None:
    loss = made("TripletMarginLoss", {"margin": 0.3, "distance": distance})
    x = rows(300, 2, 10)
    for y in (classes(300, number), torch.cat([torch.arange(40), classes(260, number)])):
        assert_equals_the_plain_form(loss, x, y)


STEEP: list[tuple[str, dict[str, Any]]] = [
    ("SupConLoss", {"temperature": 0.005}),
    ("NTXentLoss", {"temperature": 0.005}),
    ("DecoupledContrastiveLoss", {"temperature": 0.005}),
    ("DecoupledContrastiveLoss", {"temperature": 0.005, "sigma": 0.02}),
    ("MultiSimilarityLoss", {"alpha": 100, "beta": 400}),
    ("CircleLoss", {"gamma": 256}),
    ("NCALoss", {"softmax_scale": 60}),
    ("InstanceLoss", {"gamma": 90}),
]


@pytest.mark.parametrize(("name", "options"), STEEP, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("steep", [True, False])
def test_rows_off_their_own_largest_logit_in_single_precision(
    name: str, options: dict[str, Any], steep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocked_softmax, "REACH", SPAN)  # no steep options in symmetric blocks
    x, y = rows(400, 1, 64), classes(400, 7)
    references = rows(900, 2, 64), classes(900, 9, 1) - 1
    for given in ((x, y), (x, y, None, *references)):
        if len(given) == 2 and not steep:
            continue  # which the symmetric blocks do
        loss = made(name, options if steep else {"sigma": 0.5} if "sigma" in options else {})
        assert explain(loss, 400, None if len(given) == 2 else 900).startswith(f"{name}: rows form")
        exact = call(loss, *given)
        single = call(
            loss, *(z.float() if isinstance(z, Tensor) and z.is_floating_point() else z for z in given)
        )
        assert single[0].item() == pytest.approx(exact[0].item(), rel=1e-5)
        for a, b in zip(single[1:], exact[1:], strict=True):
            assert (a - b).norm() <= 1e-4 * b.norm()


@pytest.mark.parametrize(("name", "options"), STEEP, ids=lambda v: v if isinstance(v, str) else "")
def test_steep_options_in_symmetric_blocks(
    name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "suppress", nullcontext)  # no other form in their place
    options = {**options, "beta": 200} if "beta" in options else options
    loss = made(name, options)
    assert explain(loss, 500).startswith(f"{name}: blocked form")
    for x, y in (
        (rows(500, 1, 64), unbalanced(500)),
        (rows(500, 2, 64) + 3 * rows(5, 3, 64)[classes(500, 5)], classes(500, 5)),
        (rows(500, 2, 64), torch.cat([classes(250, 250), classes(250, 50)])),
    ):
        exact = call(loss, x, y)
        with plain():
            torch.testing.assert_close(exact, call(loss, x, y), rtol=1e-10, atol=1e-12)
        single = call(loss, x.float(), y)
        assert single[0].item() == pytest.approx(exact[0].item(), rel=1e-5)
        assert (single[1] - exact[1]).norm() <= 1e-4 * exact[1].norm() + 1e-24


def test_rows_too_far_apart_for_symmetric_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows(500, 1, 40), classes(500, 5)
    x[0], x[1:, 0] = 0, 0
    x[0, 0] = 1  # at a right angle to all others
    x[1] = x[1 + int((y[1:] != y[1]).nonzero()[0])]  # a negative at no distance
    loss = made("NTXentLoss", {"temperature": 0.005})
    exact = call(loss, x, y)
    with plain():
        torch.testing.assert_close(exact, call(loss, x, y), rtol=1e-10, atol=1e-12)
    monkeypatch.setattr(run, "suppress", nullcontext)
    with pytest.raises(blocked_softmax.UnevenError):
        call(loss, x, y)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ContrastiveLoss", {}),
        ("ContrastiveLoss", {"squared": True, "neg_margin": 1.5}),
        ("ThresholdConsistentMarginLoss", {}),
        ("MarginLoss", {"learn_beta": True, "num_classes": 9, "beta": 1.25}),  # exact in half precision
        ("TripletMarginLoss", {}),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_hinges_on_references_in_single_and_half_precision(name: str, options: dict[str, Any]) -> None:
    x, y = rows(400, 1, 64), classes(400, 7)
    others = rows(900, 2, 64)
    others[:40] = x[:40] + 1e-4 * rows(40, 3, 64)  # near ones, by chance of the same class or not
    given = [x, y, None, others, classes(900, 9, 1)]
    loss = made(name, options)
    assert explain(loss, 400, 900).startswith(f"{name}: rows form, because blocks of whole rows need memory")
    for dtype in (torch.float32, torch.bfloat16):
        narrow = [z.to(dtype) if isinstance(z, Tensor) and z.is_floating_point() else z for z in given]
        exactly = [z.double() if isinstance(z, Tensor) and z.is_floating_point() else z for z in narrow]
        exact, found = call(loss, *exactly), call(made(name, options).to(dtype), *narrow)
        assert found[0].item() == pytest.approx(exact[0].item(), rel=1e-5)
        # a hinge near a tie may open or close, and the last digit of half precision rounds
        limit = 1e-3 if dtype == torch.float32 else 4e-3
        for a, b in zip(found[1:], exact[1:], strict=True):
            assert (a.double() - b).norm() <= limit * b.norm()


@pytest.mark.parametrize("count", [40, 600])  # dense and in blocks
def test_a_graph_that_is_kept_gives_the_same_gradient_again(count: int) -> None:
    x, y = rows(count, 1).float().requires_grad_(), classes(count, 4)
    value = losses.SupConLoss()(x, y)
    (once,) = torch.autograd.grad(3 * value, x, retain_graph=True)
    kept = once.clone()
    (again,) = torch.autograd.grad(value, x, retain_graph=True)
    (last,) = torch.autograd.grad(2 * value, x)
    torch.testing.assert_close(once, kept, rtol=0, atol=0)
    torch.testing.assert_close(once, 3 * again, rtol=1e-6, atol=0)
    torch.testing.assert_close(last, 2 * again, rtol=0, atol=0)


@pytest.mark.parametrize("count", [40, 600])
def test_gradients_asked_for_in_a_batch(count: int) -> None:
    x, y = rows(count, 1).float().requires_grad_(), classes(count, 4)
    value = losses.SupConLoss()(x, y)
    (one,) = torch.autograd.grad(value, x, retain_graph=True)
    (batch,) = torch.autograd.grad(value, x, torch.tensor([1.0, -3.0]), is_grads_batched=True)
    torch.testing.assert_close(batch, torch.stack([one, -3 * one]))
