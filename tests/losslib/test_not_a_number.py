"""Embeddings that are not numbers: every loss says so by its value, and by no error of its own."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog
from losslib.losses import DynamicSoftMarginLoss

LABELS = torch.tensor([0, 0, 1, 1])
TRIPLETS = (torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([2, 0]))
PAIRS = (torch.tensor([0, 2]), torch.tensor([1, 3]), torch.tensor([0, 1]), torch.tensor([2, 3]))
LABELS_ALONE = {"GE2ELoss"}  # it takes classes, and so no tuple
SIZES = {"num_classes": 2, "embedding_size": 3}


def rows(seed: int = 0) -> Tensor:
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(seed))


CALLS: dict[str, dict[str, Any]] = {
    "labels": {"labels": LABELS},
    "references": {"labels": LABELS, "ref_emb": rows(1), "ref_labels": LABELS},
    "triplets": {"indices_tuple": TRIPLETS},
    "pairs": {"indices_tuple": PAIRS},
    "views": {"ref_emb": rows(1)},
}


def takes(name: str, given: str) -> bool:
    """What each loss declares that it is called with."""
    cls = catalog.get(name)
    if "two views" in cls.needs:
        return given == "views"
    if cls.required:  # its references are its own
        return given == "labels"
    return given in ("labels", "references") if name in LABELS_ALONE else given != "views"


CASES = [(name, given) for name in catalog.losses() for given in CALLS if takes(name, given)]


def made(name: str) -> Any:
    cls = catalog.get(name)
    return cls(**{n: SIZES.get(n, param.default) for n, param in cls.required.items()})


@pytest.mark.parametrize(("name", "given"), CASES)
@pytest.mark.parametrize("bad", ["one row", "all rows"])
def test_nan_embeddings_give_nan(name: str, given: str, bad: str) -> None:
    assert math.isfinite(made(name)(rows(), **CALLS[given]).item())
    x = rows()
    x[0 if bad == "one row" else slice(None)] = math.nan
    assert math.isnan(made(name)(x, **CALLS[given]).item())


@pytest.mark.parametrize(("name", "given"), CASES)
def test_infinite_embeddings_give_no_finite_value(name: str, given: str) -> None:
    x = rows()
    x[0] = math.inf
    assert not math.isfinite(made(name)(x, **CALLS[given]).item())


def test_a_memory_is_not_spoilt_by_one_batch_with_nan() -> None:
    loss = DynamicSoftMarginLoss()
    loss(rows(), LABELS)
    before = loss.histogram.clone()
    assert math.isnan(loss(torch.full((4, 3), math.nan), LABELS).item())
    assert torch.equal(loss.histogram, before)
    assert float(before.sum()) == pytest.approx(1)
    assert math.isfinite(loss(rows(2), LABELS).item())
