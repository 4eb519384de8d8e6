"""Oracles of losses beyond the first ten against pytorch-metric-learning, where the two mean the same."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from pytorch_metric_learning import distances, losses, reducers
from torch import Tensor

from tests.contract.inputs import Inputs, balanced, reference, rows, unbalanced, value_and_gradients
from tests.contract.parts import make_distance, make_reducer
from tests.contract.registered import build
from tests.oracles import oracle

# of their own code: a list used as an index, and numpy's protocol for a tensor
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:Using a non-tuple:UserWarning")

KINDS = {"balanced": balanced, "unbalanced": unbalanced, "reference": reference}
BOTH = ("balanced", "unbalanced")
ALL = (*BOTH, "reference")
RAW = ("LpDistance", {"normalize_embeddings": False})

# loss, our options, theirs, distance, reducer, kinds, relative tolerance
PAIRWISE: list[tuple[str, dict[str, Any], dict[str, Any], Any, Any, tuple[str, ...], float]] = [
    ("CircleLoss", {}, {}, None, None, ALL, 1e-9),
    ("CircleLoss", {"margin": 0.25, "gamma": 256.0}, {"m": 0.25, "gamma": 256}, None, None, ALL, 1e-9),
    ("CircleLoss", {"gamma": 2.0}, {"gamma": 2.0}, None, "SumReducer", ALL, 1e-9),
    ("TupletMarginLoss", {}, {}, None, None, ALL, 1e-8),
    (
        "TupletMarginLoss",
        {"margin": 20.0, "scale": 5.0},
        {"margin": 20.0, "scale": 5.0},
        None,
        None,
        ALL,
        1e-8,
    ),
    ("AngularLoss", {}, {}, None, None, ALL, 1e-6),
    ("AngularLoss", {"alpha": 25.0}, {"alpha": 25.0}, None, "SumReducer", ALL, 1e-6),
    ("NCALoss", {}, {}, None, None, ALL, 1e-9),
    ("NCALoss", {"softmax_scale": 5.0}, {"softmax_scale": 5.0}, "CosineSimilarity", None, ALL, 1e-9),
    ("NPairsLoss", {}, {}, None, None, BOTH, 1e-9),
    ("LiftedStructureLoss", {}, {}, None, None, ("balanced",), 1e-9),
    (
        "LiftedStructureLoss",
        {"pos_margin": 0.2, "neg_margin": 2.0},
        {"pos_margin": 0.2, "neg_margin": 2.0},
        RAW,
        None,
        ("balanced",),
        1e-9,
    ),
    ("GeneralizedLiftedStructureLoss", {}, {}, None, None, BOTH, 1e-9),
    (
        "GeneralizedLiftedStructureLoss",
        {"neg_margin": 0.5},
        {"neg_margin": 0.5},
        RAW,
        "SumReducer",
        ALL,
        1e-9,
    ),
    ("SignalToNoiseRatioContrastiveLoss", {"neg_margin": 2.5}, {"neg_margin": 2.5}, None, None, ALL, 1e-9),
    ("IntraPairVarianceLoss", {}, {}, None, None, ALL, 1e-9),
    (
        "IntraPairVarianceLoss",
        {"pos_eps": 0.1, "neg_eps": 0.2},
        {"pos_eps": 0.1, "neg_eps": 0.2},
        RAW,
        None,
        ALL,
        1e-9,
    ),
    ("FastAPLoss", {}, {}, None, None, BOTH, 1e-9),
    ("FastAPLoss", {"num_bins": 4}, {"num_bins": 4}, ("LpDistance", {}), None, BOTH, 1e-9),
    # their bins are found in float32
    ("HistogramLoss", {}, {}, None, None, BOTH, 1e-6),
    ("HistogramLoss", {"num_bins": 7}, {"n_bins": 7}, None, None, BOTH, 1e-6),
    ("PNPLoss", {}, {}, None, None, BOTH, 1e-9),
    *[
        (
            "PNPLoss",
            {"variant": v, "anneal": 0.2, "alpha": 2.0, "b": 3.0},
            {"variant": v, "anneal": 0.2, "alpha": 2.0, "b": 3.0},
            None,
            None,
            BOTH,
            1e-9,
        )
        for v in ("Ds", "Dq", "Iu", "Ib")
    ],
    # their denominators carry 1e-5 a column
    (
        "RankedListLoss",
        {"margin": 0.4, "neg_temperature": 2.0},
        {"margin": 0.4, "Tn": 2.0},
        None,
        None,
        BOTH,
        1e-3,
    ),
    (
        "RankedListLoss",
        {"margin": 0.4, "neg_temperature": 2.0, "pos_temperature": 1.0, "imbalance": 0.3, "alpha": 1.5},
        {"margin": 0.4, "Tn": 2.0, "Tp": 1.0, "imbalance": 0.3, "alpha": 1.5},
        None,
        None,
        BOTH,
        1e-3,
    ),
]


def normalised(given: Inputs) -> Inputs:
    unit = torch.nn.functional.normalize
    return replace(
        given,
        embeddings=unit(given.embeddings),
        ref_emb=None if given.ref_emb is None else unit(given.ref_emb),
    )


def along_the_sphere(found: tuple[Tensor, list[Tensor]], given: Inputs) -> tuple[Tensor, list[Tensor]]:
    """The gradients without their parts along unit rows, which a normalisation would remove."""
    places = [x for x in (given.embeddings, given.ref_emb) if x is not None]
    return found[0], [g - (g * x).sum(dim=1, keepdim=True) * x for g, x in zip(found[1], places, strict=True)]


def pml_loss(name: str, options: dict[str, Any], distance: Any, reducer: Any) -> torch.nn.Module:
    parts: dict[str, Any] = {}
    if distance is not None:
        parts["distance"] = make_distance(distances, distance)
    if reducer is not None:
        parts["reducer"] = make_reducer(reducers, reducer)
    return getattr(losses, name)(**options, **parts).double()


def assert_same(got: Any, want: Any, rtol: float) -> None:
    torch.testing.assert_close(got[0].reshape(()), want[0].reshape(()), rtol=rtol, atol=1e-12)
    for found, expected in zip(got[1], want[1], strict=True):
        scale = float(expected.abs().max())
        torch.testing.assert_close(found, expected, rtol=100 * rtol, atol=100 * rtol * scale)


@pytest.mark.parametrize(
    ("name", "options", "theirs", "distance", "reducer", "kind", "rtol"),
    [
        pytest.param(*case[:5], kind, case[6], id=f"{case[0]}-{number}-{kind}")
        for number, case in enumerate(PAIRWISE)
        for kind in case[5]
    ],
)
def test_a_pairwise_oracle_and_the_library_equal_pml(
    name: str, options: Any, theirs: Any, distance: Any, reducer: Any, kind: str, rtol: float
) -> None:
    given: Inputs = KINDS[kind]()
    if name == "AngularLoss":  # they normalise anchors and positives, but not the negatives
        given = normalised(given)

    def ours(**arguments: Any) -> Tensor:
        return oracle(name).value(distance=distance, reducer=reducer, options=options, **arguments)

    expected = value_and_gradients(pml_loss(name, theirs, distance, reducer), given)
    assert abs(float(expected[0])) > 1e-4, "an input on which the loss is 0 shows nothing"
    for call in (ours, build(name, options, distance, reducer)):
        got, want = value_and_gradients(call, given), expected
        if name == "AngularLoss":
            got, want = along_the_sphere(got, given), along_the_sphere(want, given)
        assert_same(got, want, rtol)


CLASSES, SIZE = 6, 4
# loss, our options, theirs, name of their weight, rows of ours a class, whether theirs is (D, C)
PROXIES: list[tuple[str, dict[str, Any], dict[str, Any], str, int, bool]] = [
    ("ProxyNCALoss", {"softmax_scale": 3.0}, {"softmax_scale": 3.0}, "proxies", 1, False),
    ("ProxyAnchorLoss", {}, {}, "proxies", 1, False),
    ("ProxyAnchorLoss", {"margin": 0.3, "alpha": 4.0}, {"margin": 0.3, "alpha": 4.0}, "proxies", 1, False),
    ("NormalizedSoftmaxLoss", {"temperature": 0.2}, {"temperature": 0.2}, "W", 1, True),
    ("CosFaceLoss", {"scale": 5.0}, {"scale": 5.0}, "W", 1, True),
    ("ArcFaceLoss", {"scale": 5.0}, {"scale": 5.0, "margin": math.degrees(0.5)}, "W", 1, True),
    ("ArcFaceLoss", {"scale": 5.0, "margin": 2.0}, {"scale": 5.0, "margin": math.degrees(2.0)}, "W", 1, True),
    ("SubCenterArcFaceLoss", {"scale": 5.0}, {"scale": 5.0, "margin": math.degrees(0.5)}, "W", 3, True),
    ("LargeMarginSoftmaxLoss", {}, {}, "W", 1, True),
    ("LargeMarginSoftmaxLoss", {"margin": 3, "scale": 0.5}, {"margin": 3, "scale": 0.5}, "W", 1, True),
    ("SphereFaceLoss", {}, {}, "W", 1, True),
    ("SoftTripleLoss", {"centers_per_class": 3}, {"centers_per_class": 3}, "fc", 3, True),
    (
        "SoftTripleLoss",
        {"centers_per_class": 2, "la": 5.0, "gamma": 0.5, "margin": 0.2},
        {"centers_per_class": 2, "la": 5.0, "gamma": 0.5, "margin": 0.2},
        "fc",
        2,
        True,
    ),
]


@pytest.mark.parametrize(("name", "options", "theirs", "attribute", "centres", "turned"), PROXIES)
def test_a_proxy_oracle_equals_pml(
    name: str, options: Any, theirs: Any, attribute: str, centres: int, turned: bool
) -> None:
    made = getattr(losses, name)(num_classes=CLASSES, embedding_size=SIZE, **theirs).double()
    weight = rows(CLASSES * centres, 200)
    their_weight = torch.nn.Parameter((weight.t() if turned else weight).contiguous().clone())
    setattr(made, attribute, their_weight)
    our_weight = weight.clone().requires_grad_()
    given = unbalanced()

    def ours(**arguments: Any) -> Tensor:
        return oracle(name).value(options={**options, "weight": our_weight}, **arguments)

    assert_same(value_and_gradients(ours, given), value_and_gradients(made, given), 1e-7)
    ours(**given.arguments()).backward()
    made(given.embeddings, given.labels).backward()
    theirs_gradient = their_weight.grad.t() if turned else their_weight.grad  # type: ignore[union-attr]
    torch.testing.assert_close(our_weight.grad, theirs_gradient, rtol=1e-5, atol=1e-8)


def test_p2sgrad_equals_pml() -> None:
    made = losses.P2SGradLoss(descriptors_dim=SIZE, num_classes=CLASSES).double()
    weight = torch.nn.functional.normalize(rows(CLASSES, 201), dim=1)
    made.weight.data = weight.t().clone()
    given = balanced()
    expected = made(given.embeddings, given.labels)
    got = oracle("P2SGradLoss").value(given.embeddings, given.labels, options={"weight": weight})
    torch.testing.assert_close(got, expected.double(), rtol=1e-6, atol=0)


def test_vicreg_equals_pml() -> None:
    x, y = 0.5 * rows(7, 202), 0.5 * rows(7, 203)
    options = {"invariance_lambda": 3.0, "variance_mu": 5.0, "covariance_v": 2.0, "eps": 1e-3}
    expected = losses.VICRegLoss(**options)(x, ref_emb=y)
    got = oracle("VICRegLoss").value(x, torch.arange(7), None, y, torch.arange(7), options=options)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=0)


def test_smooth_ap_equals_pml_on_sorted_classes_of_one_size() -> None:
    x, labels = rows(9, 204), torch.arange(3).repeat_interleave(3)
    expected = losses.SmoothAPLoss(temperature=0.1)(x, labels)
    got = oracle("SmoothAPLoss").value(x, labels, options={"temperature": 0.1})
    torch.testing.assert_close(got, expected.double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["balanced", "unbalanced"])
def test_dynamic_soft_margin_equals_pml_on_its_first_batch(kind: str) -> None:
    given = KINDS[kind]()
    expected = losses.DynamicSoftMarginLoss()(given.embeddings, given.labels).detach()
    for call in (oracle("DynamicSoftMarginLoss").value, build("DynamicSoftMarginLoss")):
        got = call(given.embeddings, given.labels)
        torch.testing.assert_close(got, expected, rtol=1e-6, atol=0)  # their bins are kept in float32
