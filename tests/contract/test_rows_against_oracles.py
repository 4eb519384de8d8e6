"""Fused losses in blocks of whole rows, and in symmetric blocks, against loops over every kind of input.

Batches are far too small for these forms to be chosen: they are forced, in blocks of three rows.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch

from losslib import distances, reducers
from losslib.kernels import explain, row_blocks
from losslib.kernels.forms import kernels
from tests.contract.inputs import DEGENERATE, KINDS, Inputs, rows
from tests.contract.registered import build, label_of
from tests.contract.test_against_oracles import assert_equals_oracle, away_from_ties
from tests.oracles import oracle

GIVEN = {kind: make for kind, make in {**KINDS, **DEGENERATE}.items() if "tuple" not in kind}
IN_ROWS = sorted((cls for cls, kernel in kernels().items() if kernel.by_rows), key=lambda cls: cls.__name__)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "ContrastiveLoss": [{"squared": True}],
    "MarginLoss": [{"learn_beta": True, "nu": 0.3}, {"learn_beta": True, "nu": 0.3, "num_classes": 6}],
    "TripletMarginLoss": [{"margin": 1.0}],
    "SupConLoss": [{"temperature": 0.01}],
    "NTXentLoss": [{"temperature": 0.01}],
    "DecoupledContrastiveLoss": [{"sigma": 0.5}, {"temperature": 0.01, "sigma": 0.02}],
    "MultiSimilarityLoss": [{"alpha": 90.0, "beta": 300.0}],
    "CircleLoss": [{"gamma": 256.0}],
    "NCALoss": [{"softmax_scale": 100.0}],
    "InstanceLoss": [{"gamma": 100.0}],
}
CASES = [
    pytest.param(cls.__name__, options, id=f"{cls.__name__}-{label_of(options)}")
    for cls in IN_ROWS
    for options in ({}, *OPTIONS.get(cls.__name__, []))
]


@pytest.fixture(params=[True, False], ids=["rows", "blocks"])
def whole_rows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether whole rows are taken where symmetric blocks would do as well."""
    monkeypatch.setattr(row_blocks, "_MOST", 3)
    for cls in IN_ROWS:
        forced: dict[str, Any] = {"unblocked": lambda loss: "a test says so"} if request.param else {}
        monkeypatch.setitem(kernels(), cls, replace(kernels()[cls], blocked_from=1, **forced))
    return bool(request.param)


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_kind_of_input(name: str, options: dict[str, Any], whole_rows: bool) -> None:
    form = explain(build(name, options), 8).split(": ")[1].split(" ")[0]
    assert form == "rows" if whole_rows else form in ("rows", "blocked")
    for kind, make in GIVEN.items():
        given = options
        if kind == "zero_rows":
            given = away_from_ties(name, options)
        if kind == "coincident" and options.get("margin_plus") == 1.0:
            given = {"margin_plus": 1.01}  # the cosine of equal rows is 1 up to rounding
        assert_equals_oracle(name, make(), given)


@pytest.mark.parametrize(
    "distance",
    [
        distances.LpDistance(power=2),
        distances.LpDistance(normalize_embeddings=False),
        distances.LpDistance(power=2, normalize_embeddings=False),
        distances.DotProductSimilarity(),
    ],
    ids=["squared", "lengths", "squared lengths", "dot"],
)
@pytest.mark.parametrize("name", [cls.__name__ for cls in IN_ROWS])
@pytest.mark.parametrize("whole_rows", [True], indirect=True)
@pytest.mark.usefixtures("whole_rows")
def test_other_distances(name: str, distance: distances.Distance) -> None:
    if distance.is_inverted or not build(name).needs_similarity:
        known = ("LpDistance" if not distance.is_inverted else "DotProductSimilarity"), {}
        if not distance.is_inverted:
            known[1].update(power=distance.power, normalize_embeddings=distance.normalize_embeddings)
        for kind in ("unbalanced", "reference", "coincident"):
            assert_equals_oracle(name, GIVEN[kind](), {}, distance=known)


@pytest.mark.parametrize("name", [cls.__name__ for cls in IN_ROWS])
@pytest.mark.parametrize("whole_rows", [True], indirect=True)
@pytest.mark.usefixtures("whole_rows")
def test_other_reducers(name: str) -> None:
    if oracle(name).reducer in (None, ("DivisorReducer", {})):
        return
    for reducer in (reducers.MeanReducer, reducers.SumReducer, reducers.AvgNonZeroReducer):
        for kind in ("unbalanced", "reference", "one_class"):
            assert_equals_oracle(name, GIVEN[kind](), {}, reducer=(reducer.__name__, {}))


@pytest.mark.parametrize("whole_rows", [True], indirect=True)
@pytest.mark.usefixtures("whole_rows")
def test_a_block_without_a_class_among_the_references() -> None:
    x, y = rows(9, 1), rows(5, 2)
    labels, others = [0, 0, 0, 4, 4, 4, 9, 9, 9], [1, 1, 2, 9, 9]
    given = Inputs(x, torch.tensor(labels), None, y, torch.tensor(others))
    for cls in IN_ROWS:
        assert_equals_oracle(cls.__name__, given, {})
