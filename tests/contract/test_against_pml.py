"""The oracles and the library against pytorch-metric-learning in float64, where they mean the same."""

from typing import Any

import pytest
import torch
from pytorch_metric_learning import distances, losses, reducers

from tests.contract.inputs import KINDS, Inputs, value_and_gradients
from tests.contract.parts import CLASS_WEIGHTS, SUM_OF_POSITIVES, make_distance, make_reducer
from tests.contract.registered import build
from tests.oracles import oracle

LABELLED = ("balanced", "unbalanced", "reference")
EVERY = tuple(KINDS)
LP1 = ("LpDistance", {"p": 1})
RAW = ("LpDistance", {"normalize_embeddings": False})
SQUARED = ("LpDistance", {"power": 2})
DOT = ("DotProductSimilarity", {"normalize_embeddings": False})
COSINE = ("CosineSimilarity", {})
SNR = ("SNRDistance", {})
CLASS_WEIGHTED = ("ClassWeightedReducer", {"weights": CLASS_WEIGHTS})
PER_ANCHOR = ("PerAnchorReducer", {"reducer": ("AvgNonZeroReducer", {})})
THRESHOLD = ("ThresholdReducer", {"low": 0.1, "high": 0.9})

# loss, options, distance, reducer, kinds of input on which the two agree
CASES: list[tuple[str, dict[str, Any], Any, Any, tuple[str, ...]]] = [
    ("ContrastiveLoss", {}, None, None, EVERY),
    ("ContrastiveLoss", {"pos_margin": 0.4, "neg_margin": 1.3}, None, "MeanReducer", EVERY),
    ("ContrastiveLoss", {"neg_margin": 2.5}, RAW, "SumReducer", EVERY),
    ("ContrastiveLoss", {}, LP1, THRESHOLD, EVERY),
    ("ContrastiveLoss", {"pos_margin": 1.0, "neg_margin": 0.0}, COSINE, None, EVERY),
    ("ContrastiveLoss", {"neg_margin": 2.0}, SQUARED, None, EVERY),
    ("ContrastiveLoss", {"neg_margin": 2.0}, SNR, None, EVERY),
    ("ContrastiveLoss", {"pos_margin": 1.0, "neg_margin": -1.0}, DOT, None, EVERY),
    ("ContrastiveLoss", {"neg_margin": 1.5}, None, SUM_OF_POSITIVES, EVERY),
    ("ContrastiveLoss", {"neg_margin": 1.5}, None, CLASS_WEIGHTED, LABELLED),
    ("ContrastiveLoss", {"neg_margin": 1.5}, None, "PerAnchorReducer", ("balanced", "unbalanced")),
    ("NTXentLoss", {"temperature": 0.3}, None, PER_ANCHOR, ("balanced", "unbalanced")),
    ("MarginLoss", {}, None, None, EVERY),
    ("MarginLoss", {"margin": 0.5, "beta": 0.8}, RAW, None, EVERY),
    ("MarginLoss", {"beta": 0.1}, COSINE, None, EVERY),
    ("MarginLoss", {"nu": 0.3, "learn_beta": True}, None, None, EVERY),
    ("MarginLoss", {"nu": 0.3, "learn_beta": True, "num_classes": 6}, None, None, LABELLED),
    ("TripletMarginLoss", {"margin": 0.2}, None, None, EVERY),
    ("TripletMarginLoss", {"margin": 0.2}, COSINE, "MeanReducer", EVERY),
    ("TripletMarginLoss", {"margin": 1.0}, DOT, ("ThresholdReducer", {"low": 0.1, "high": 6.0}), EVERY),
    ("TripletMarginLoss", {"margin": 0.3, "smooth_loss": True}, RAW, None, EVERY),
    ("TripletMarginLoss", {"margin": 0.3}, SNR, None, EVERY),
    (
        "TripletMarginLoss",
        {"margin": 0.3, "swap": True},
        None,
        None,
        ("balanced", "unbalanced", "triplet_tuple"),
    ),
    ("TripletMarginLoss", {"margin": 0.3, "swap": True}, COSINE, None, ("balanced", "pair_tuple")),
    ("NTXentLoss", {"temperature": 0.5}, None, None, EVERY),
    ("NTXentLoss", {"temperature": 0.5}, RAW, "SumReducer", EVERY),
    ("SupConLoss", {"temperature": 0.5}, None, None, EVERY),
    ("SupConLoss", {"temperature": 0.5}, SQUARED, "SumReducer", EVERY),
    ("SupConLoss", {"temperature": 0.5}, None, "MeanReducer", ("balanced",)),
    ("MultiSimilarityLoss", {}, None, None, LABELLED),
    ("MultiSimilarityLoss", {"alpha": 3.0, "beta": 20.0, "base": 0.2}, None, "SumReducer", EVERY),
    ("MultiSimilarityLoss", {"base": 1.0}, RAW, None, LABELLED),
    (
        "ThresholdConsistentMarginLoss",
        {},
        None,
        None,
        ("balanced", "unbalanced", "triplet_tuple", "pair_tuple"),
    ),
    (
        "ThresholdConsistentMarginLoss",
        {"lambda_plus": 2.0, "lambda_minus": 0.5, "margin_plus": 0.3, "margin_minus": -0.2},
        None,
        None,
        ("balanced", "unbalanced", "triplet_tuple", "pair_tuple"),
    ),
]
PML_NAME = {"TripletLoss": "TripletMarginLoss"}


def pml_loss(name: str, options: dict[str, Any], distance: Any, reducer: Any) -> torch.nn.Module:
    parts: dict[str, Any] = {}
    if distance is not None:
        parts["distance"] = make_distance(distances, distance)
    if reducer is not None:
        parts["reducer"] = make_reducer(reducers, reducer)
    made = getattr(losses, PML_NAME.get(name, name))(**options, **parts).double()
    if name == "MarginLoss":  # they keep beta in float32 and lose its digits
        beta = torch.full_like(made.beta, options.get("beta", 1.2), dtype=torch.float64)
        made.beta = torch.nn.Parameter(beta) if options.get("learn_beta") else beta
    return made


def expanded() -> list[Any]:
    return [
        pytest.param(*case[:4], kind, id=f"{case[0]}-{number}-{kind}")
        for number, case in enumerate(CASES)
        for kind in case[4]
    ]


def assert_same(
    got: tuple[torch.Tensor, list[torch.Tensor]], want: tuple[torch.Tensor, list[torch.Tensor]]
) -> None:
    torch.testing.assert_close(got[0].reshape(()), want[0].reshape(()), rtol=1e-9, atol=1e-12)
    for found, expected in zip(got[1], want[1], strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "options", "distance", "reducer", "kind"), expanded())
def test_the_oracle_equals_pml(
    name: str, options: dict[str, Any], distance: Any, reducer: Any, kind: str
) -> None:
    given: Inputs = KINDS[kind]()
    theirs = pml_loss(name, options, distance, reducer)

    def ours(**arguments: Any) -> torch.Tensor:
        return oracle(name).value(distance=distance, reducer=reducer, options=options, **arguments)

    expected = value_and_gradients(theirs, given)
    assert abs(float(expected[0])) > 1e-3, "an input on which the loss is 0 shows nothing"
    assert_same(value_and_gradients(ours, given), expected)


@pytest.mark.parametrize(("name", "options", "distance", "reducer", "kind"), expanded())
def test_the_library_equals_pml(
    name: str, options: dict[str, Any], distance: Any, reducer: Any, kind: str
) -> None:
    given: Inputs = KINDS[kind]()
    theirs = pml_loss(name, options, distance, reducer)
    assert_same(
        value_and_gradients(build(name, options, distance, reducer), given),
        value_and_gradients(theirs, given),
    )
