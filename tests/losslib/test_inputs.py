"""Wrong inputs: one line that names the loss, the argument, what was expected and what came."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog
from losslib.base import PairLoss
from losslib.errors import ShapeError
from losslib.losses import ContrastiveLoss, CosineEmbeddingLoss, MarginLoss, TripletLoss
from losslib.types import PairIndices, TripletIndices

PAIR_LOSSES = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss)]
X, Y = torch.randn(6, 3), torch.arange(6) % 3
every = pytest.mark.parametrize("name", PAIR_LOSSES)


def index(*values: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.tensor(values, dtype=dtype)


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "nothing": ({}, ShapeError, "give labels or indices_tuple, got neither"),
    "column": (
        {"labels": Y[:, None]},
        ShapeError,
        r"labels must have shape \(6,\), one label a row, got \(6, 1\)",
    ),
    "one-hot": ({"labels": torch.eye(3, dtype=torch.int64)[Y]}, ShapeError, r"got \(6, 3\)"),
    "longer": ({"labels": torch.arange(8)}, ShapeError, r"must have shape \(6,\).*got \(8,\)"),
    "shorter": ({"labels": torch.arange(1)}, ShapeError, r"got \(1,\)"),
    "scalar": ({"labels": torch.tensor(1)}, ShapeError, r"got \(\)"),
    "list": ({"labels": [0, 1, 2, 0, 1, 2]}, TypeError, "labels must be a tensor of shape .* got list"),
    "complex": (
        {"labels": Y.to(torch.complex64)},
        TypeError,
        "labels must be whole numbers, booleans or floating",
    ),
    "reference alone": (
        {"labels": Y, "ref_emb": X},
        ShapeError,
        "ref_emb with labels needs ref_labels, got None",
    ),
    "reference labels alone": (
        {"labels": Y, "ref_labels": Y},
        ShapeError,
        "ref_labels must come with ref_emb",
    ),
    "reference width": (
        {"labels": Y, "ref_emb": torch.randn(4, 2), "ref_labels": Y[:4]},
        ShapeError,
        "ref_emb must have 3 columns as embeddings have, got 2",
    ),
    "reference dtype": (
        {"labels": Y, "ref_emb": X.double(), "ref_labels": Y},
        ShapeError,
        "ref_emb must be torch.float32 as embeddings are, got torch.float64",
    ),
    "reference label length": (
        {"labels": Y, "ref_emb": X, "ref_labels": Y[:2]},
        ShapeError,
        r"ref_labels must have shape \(6,\), one label a row, got \(2,\)",
    ),
    "kinds of labels": (
        {"labels": Y, "ref_emb": X, "ref_labels": Y.float()},
        TypeError,
        "labels and ref_labels must both be whole numbers or both floating",
    ),
    "two index tensors": ({"indices_tuple": (index(0), index(1))}, ShapeError, "got 2 entries"),
    "one tensor": ({"indices_tuple": index(0, 1, 2)}, ShapeError, "indices_tuple must be .*, got Tensor"),
    "float indices": (
        {"indices_tuple": (index(0).float(), index(1), index(2))},
        TypeError,
        "indices_tuple anchors must be int64 or int32 tensors, got torch.float32",
    ),
    "boolean indices": (
        {"indices_tuple": (index(0), index(1).bool(), index(2))},
        TypeError,
        "indices_tuple positives must be int64 or int32 tensors, got torch.bool",
    ),
    "index matrix": (
        {"indices_tuple": (index(0), index(1), index(2)[:, None])},
        ShapeError,
        r"indices_tuple negatives must be one-dimensional, got \(1, 1\)",
    ),
    "unequal triplets": (
        {"indices_tuple": (index(0, 1), index(1), index(2))},
        ShapeError,
        r"equal length.*\[2, 1, 1\]",
    ),
    "unequal pairs": (
        {"indices_tuple": (index(0), index(1), index(0, 1), index(2))},
        ShapeError,
        r"equal length, got \[1, 1, 2, 1\]",
    ),
    "index too large": (
        {"indices_tuple": (index(0), index(6), index(2))},
        ShapeError,
        r"indices_tuple positives must lie in 0\.\.5, got values from 6 to 6",
    ),
    "negative index": (
        {"indices_tuple": (index(-1), index(1), index(2))},
        ShapeError,
        "got values from -1 to -1",
    ),
    "index beyond the reference": (
        {"indices_tuple": (index(5), index(1), index(3)), "ref_emb": X[:3]},
        ShapeError,
        r"negatives must lie in 0\.\.2, got values from 3 to 3",
    ),
}


@every
@pytest.mark.parametrize("kind", list(BAD))
def test_bad_inputs_are_refused_in_one_line(name: str, kind: str) -> None:
    arguments, error, message = BAD[kind]
    with pytest.raises(error, match=message) as caught:
        catalog.get(name)()(X, **arguments)
    assert str(caught.value).startswith(f"{name}: ")
    assert "\n" not in str(caught.value)


@every
def test_bad_embeddings(name: str) -> None:
    loss = catalog.get(name)()
    for x, error in (
        (X[0], ShapeError),
        (X[None], ShapeError),
        (X[:, :0], ShapeError),
        (X.long(), TypeError),
    ):
        with pytest.raises(error, match=f"{name}: embeddings must"):
            loss(x, Y[: len(x)])
    with pytest.raises(TypeError, match="embeddings must be a tensor, got list"):
        loss([[0.0]], Y)


@every
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("kind", [tuple, list, "named"])
def test_forms_of_an_index_tuple_agree(name: str, dtype: torch.dtype, kind: Any) -> None:
    loss = catalog.get(name)()
    triplets = [index(0, 1, 3, dtype=dtype), index(3, 4, 0, dtype=dtype), index(1, 0, 2, dtype=dtype)]
    pairs = [*triplets[:2], index(0, 1, 3, dtype=dtype), triplets[2]]
    plain = loss(X, None, tuple(i.long() for i in triplets)).item()
    as_given = TripletIndices(*triplets) if kind == "named" else kind(triplets)
    assert loss(X, None, as_given).item() == plain
    as_pairs = PairIndices(*pairs) if kind == "named" else kind(pairs)
    assert loss(X, None, as_pairs).item() == pytest.approx(plain)  # one triplet an anchor: the same pairs


@every
def test_an_empty_tuple_is_nothing_to_do(name: str) -> None:
    x = X.clone().requires_grad_()
    none = index()
    for given in ((none,) * 3, (none,) * 4):
        value = catalog.get(name)()(x, Y, given)
        assert value.item() == 0.0
        (gradient,) = torch.autograd.grad(value, x)
        assert not gradient.any()


@every
def test_a_tuple_needs_no_labels_and_wins_over_them(name: str) -> None:
    given = (index(0, 1), index(2, 3), index(4, 5))  # not what the labels say
    loss = catalog.get(name)().eval()  # one of them remembers what it was trained on
    assert loss(X, Y, given).item() == loss(X, None, given).item()
    assert loss(X, None, given, X + 1).item() == loss(X, Y, given, X + 1, Y).item()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CosineEmbeddingLoss()(X, X, Y), "target must hold 1 and -1 only"),
        (lambda: CosineEmbeddingLoss()(X, X, torch.ones(5)), r"target must have shape \(6,\), got \(5,\)"),
        (lambda: CosineEmbeddingLoss()(X, X), "the direct form takes exactly x1, x2, target"),
        (lambda: CosineEmbeddingLoss()(X, X[:4], torch.ones(6)), r"x1 and x2 must both have shape \(B, D\)"),
        (lambda: TripletLoss()(X, X, X[:, :2]), r"anchor and negative must both have shape \(B, D\)"),
        (lambda: TripletLoss()(anchor=X, positive=X), "takes exactly anchor, positive, negative"),
        (lambda: TripletLoss()(X, X, X, X), "takes exactly anchor, positive, negative"),
    ],
)
def test_the_direct_forms_check_their_rows(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call()


def test_a_batch_too_wide_for_its_own_labels_under_autocast() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):  # there the reference may come in another dtype
        value = ContrastiveLoss()(X.bfloat16(), Y, None, X, Y)
    assert value.dtype == torch.float32


def test_class_indexed_labels() -> None:
    loss = MarginLoss(num_classes=3)
    with pytest.raises(ShapeError, match=r"MarginLoss: anchors' labels must lie in 0\.\.2"):
        loss(X, Y + 1)
    with pytest.raises(ShapeError, match="num_classes needs labels"):
        loss(X, None, (index(0), index(1), index(2)))
    with pytest.raises(TypeError, match="labels must be whole numbers with num_classes"):
        loss(X, Y.double())
    assert loss(X, Y, None, X, Y + 1).isfinite()  # the reference's labels may be any
