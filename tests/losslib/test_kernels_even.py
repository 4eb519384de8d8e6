"""Classes of one size, in the order of their labels, against the plain form."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, losses
from losslib.kernels import even_masks, explain, plain, run
from losslib.kernels.forms import kernels
from tests.losslib.fused_forms import (
    VARIANTS,
    assert_equals_on_every_input,
    assert_equals_the_plain_form,
    call,
    classes,
    made,
    rows,
)


def unfit(loss: Any) -> str:
    return kernels()[type(loss)].unfit(loss)


DEFAULT = [cls.__name__ for cls in kernels() if len(kernels()[cls].even(made(cls.__name__, {})))]
FIT = [(name, options) for name, options in VARIANTS if not unfit(made(name, options))]
EVEN = [(name, options) for name, options in FIT if name in DEFAULT]


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of classes that were put in order, however few the rows are and however steep the logits."""
    found: list[int] = []

    def counting(*given: Any) -> Any:
        masks = even_masks.even_masks(*given)
        found.extend(() if masks is None else (masks.rows // masks.size,))
        return masks

    monkeypatch.setattr(run, "even_masks", counting)
    for cls, kernel in kernels().items():
        if cls.__name__ in DEFAULT:
            monkeypatch.setitem(
                kernels(), cls, replace(kernel, even=lambda loss: range(2, 1000), reach=lambda loss: 0.0)
            )
    return found


@pytest.mark.parametrize(("name", "options"), EVEN, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("rows_", [20, 200])
def test_equals_the_plain_form(name: str, options: dict[str, Any], rows_: int, ordered: list[int]) -> None:
    assert_equals_on_every_input(name, options, rows_)
    assert set(ordered) == {2, 5}


@pytest.mark.parametrize("labels", ["two views", "16 classes", "two classes", "far labels"])
@pytest.mark.parametrize("name", DEFAULT)
def test_single_precision(name: str, labels: str, ordered: list[int]) -> None:
    number = {"two views": 160, "16 classes": 16, "two classes": 2, "far labels": 32}[labels]
    x, y = rows(320, 1, 64), classes(320, number)
    if labels == "far labels":  # further apart than single precision could tell
        y = 2**40 - y * y
    with plain():
        exact = call(made(name, {}), x, y)
    single = call(made(name, {}).float(), x.float(), y)
    assert ordered == [number]
    assert single[0].item() == pytest.approx(exact[0].item(), rel=1e-5)
    assert (single[1] - exact[1]).norm() <= 1e-4 * exact[1].norm()


@pytest.mark.parametrize("name", DEFAULT)
def test_pulls_of_rows_near_each_other(name: str, ordered: list[int]) -> None:
    """All pulls of one sign come before those of the other, with which they cancel."""
    x, y = (rows(1, 1, 64) + 0.01 * rows(512, 2, 64)).float(), classes(512, 2)
    with plain():
        exact = call(made(name, {}), x.double(), y)
    single = call(made(name, {}).float(), x, y)
    assert ordered == [2]
    assert (single[1] - exact[1]).norm() <= 5e-5 * exact[1].norm()


@pytest.mark.parametrize(
    "y",
    [
        torch.tensor([0] * 3 + [1] * 5),  # as many rows as two classes of four
        torch.tensor([0] * 2 + [1] * 2 + [2] * 4 + [3] * 4),
        torch.tensor([0] * 6 + [1] * 2 + [2] * 4),
        torch.arange(8),
        torch.zeros(8, dtype=torch.int64),
        torch.arange(8) % 2 / 2,
    ],
    ids=str,
)
def test_other_classes_are_left_as_they_are(y: Tensor, ordered: list[int]) -> None:
    x = rows(len(y), 1)
    found = call(losses.NTXentLoss(), x, y)
    with plain():
        torch.testing.assert_close(found, call(losses.NTXentLoss(), x, y), rtol=1e-10, atol=1e-12)
    assert ordered == []


@pytest.mark.parametrize(
    "distance", [distances.DotProductSimilarity(), distances.LpDistance(normalize_embeddings=False)], ids=repr
)
def test_logits_without_a_bound_go_by_rows(distance: Any, ordered: list[int]) -> None:
    for name in sorted(set(DEFAULT) - {"MarginLoss"}):
        if made(name, {}).needs_similarity and not distance.is_inverted:
            continue
        loss = made(name, {"distance": distance})
        assert "rows form" in explain(loss, 40), name
        assert_equals_the_plain_form(loss, 5 * rows(40, 1), classes(40, 4))
    assert ordered == []


def test_a_row_that_is_no_number(ordered: list[int]) -> None:
    x, y = rows(40, 1), classes(40, 4)
    x[7, 2] = torch.nan
    for name in DEFAULT:
        assert made(name, {})(x, y).isnan(), name
    assert ordered == [4] * len(DEFAULT)


def test_it_is_explained() -> None:
    whole = "classes of one size go as one matrix in the order of labels"
    assert whole in explain(losses.NTXentLoss(), 512)
    assert whole in explain(losses.DecoupledContrastiveLoss(sigma=0.5), 256)
    for loss, count, references in (
        (losses.NTXentLoss(), 100, None),
        (losses.NTXentLoss(), 2000, None),
        (losses.NTXentLoss(), 512, 512),
        (losses.NTXentLoss(temperature=0.01), 512, None),
        (losses.ContrastiveLoss(), 256, None),
    ):
        assert whole not in explain(loss, count, references)
    assert whole not in explain(losses.NTXentLoss(), 512, device="cuda")
