"""GE2E against its oracle, and Instance where its paper and pytorch-metric-learning agree."""

import math
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml

from losslib import losses
from losslib.check import audit
from losslib.distances import LpDistance
from tests.contract.inputs import DEGENERATE, KINDS, balanced, rows, triplet_tuple, value_and_gradients
from tests.contract.registered import build, label_of, variants
from tests.oracles import oracle

LABELLED = ("balanced", "unbalanced", "reference", "one_class", "all_different", "one_row", "no_row")
LABELLED += ("coincident", "zero_rows", "same_object_as_reference")
EVERY_KIND = {**KINDS, **DEGENERATE}
OPTIONS = [*variants("GE2ELoss"), {"variant": "contrast", "bias": 0.0, "scale": 1.0}]


@pytest.mark.parametrize("kind", LABELLED)
@pytest.mark.parametrize("options", OPTIONS, ids=label_of)
def test_ge2e_equals_its_equation(options: dict[str, Any], kind: str) -> None:
    given = EVERY_KIND[kind]()

    def want(**arguments: Any) -> torch.Tensor:
        return oracle("GE2ELoss").value(options=options, **arguments)

    value, gradients = value_and_gradients(build("GE2ELoss", options), given)
    expected, slopes = value_and_gradients(want, given)
    torch.testing.assert_close(value, expected, rtol=1e-9, atol=1e-11)
    for found, slope in zip(gradients, slopes, strict=True):
        scale = float(slope.abs().max()) if slope.numel() else 0.0
        torch.testing.assert_close(found, slope, rtol=1e-7, atol=1e-8 * max(scale, 1e-3))


@pytest.mark.parametrize("variant", ["softmax", "contrast"])
def test_ge2e_learns_what_its_variant_depends_on(variant: str) -> None:
    loss = build("GE2ELoss", {"variant": variant})
    assert [name for name, _ in loss.named_parameters()] == ["scale", "bias"][: 1 + (variant == "contrast")]
    given = balanced()
    loss(**given.arguments()).backward()
    scale, bias = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (10.0, -5.0))
    options = {"variant": variant, "scale": scale, "bias": bias}
    oracle("GE2ELoss").value(**given.arguments(), options=options).backward()
    assert float(loss.scale.grad) == pytest.approx(float(scale.grad), rel=1e-9)
    if variant == "contrast":
        assert float(loss.bias.grad) == pytest.approx(float(bias.grad), rel=1e-9)
    else:
        assert float(bias.grad) == pytest.approx(0.0, abs=1e-12)  # it cancels


def test_ge2e_leaves_out_rows_without_company() -> None:
    x, labels = rows(4, 700), torch.tensor([3, 8, 3, 5])
    assert losses.GE2ELoss().double().loss_terms(x, labels)["loss"].indices.tolist() == [0, 2]


def test_ge2e_by_hand() -> None:
    # row 0's company is row 1, at 60 degrees from it; the other class is row 2, at 90 degrees
    angles = torch.tensor([0.0, 60.0, 90.0], dtype=torch.float64).deg2rad()
    x = torch.stack([angles.cos(), angles.sin()], 1)
    loss = build("GE2ELoss", {"scale": 2.0})
    first = math.log(1 + math.exp(2 * 0.0 - 2 * 0.5))
    second = math.log(1 + math.exp(2 * math.cos(math.radians(30)) - 2 * 0.5))
    value = loss(x, torch.tensor([0, 0, 1]))
    assert float(value.detach()) == pytest.approx((first + second) / 2, rel=1e-12)


def test_ge2e_refuses_tuples_distances_and_another_dtype() -> None:
    given = triplet_tuple()
    with pytest.raises(ValueError, match="GE2ELoss: takes no indices_tuple, because"):
        build("GE2ELoss")(**given.arguments())
    with pytest.raises(TypeError, match="GE2ELoss: distance must be a similarity"):
        losses.GE2ELoss(distance=LpDistance())
    with pytest.raises(ValueError, match="GE2ELoss: scale must match"):
        losses.GE2ELoss()(given.embeddings, given.labels)


@pytest.mark.parametrize("options", [{}, {"variant": "contrast"}], ids=label_of)
def test_ge2e_passes_the_audit(options: dict[str, Any]) -> None:
    report = audit(losses.GE2ELoss(**options))
    assert report.failed == (), str(report)
    assert sum(check.status == "passed" for check in report.checks) >= 28


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_ge2e_compiles_whole() -> None:
    given, loss = balanced(), build("GE2ELoss")
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    want = float(loss(**given.arguments()).detach())
    assert float(compiled(**given.arguments()).detach()) == pytest.approx(want, rel=1e-9)


def test_instance_equals_pml_where_every_row_is_a_class() -> None:
    x, labels = rows(6, 701), torch.arange(6)
    for gamma in (1.0, 8.0, 64.0):
        want = pml.InstanceLoss(gamma=gamma)(x, labels)
        got = losses.InstanceLoss(gamma=gamma)(x, labels)
        assert float(got) == pytest.approx(float(want), rel=1e-7, abs=1e-12)


def test_instance_by_hand() -> None:
    # cosines 0.5 (its class) and 0 (another): (e + e^0.5) of (e + e^0.5 + 1)
    angles = torch.tensor([0.0, 60.0, 90.0], dtype=torch.float64).deg2rad()
    x = torch.stack([angles.cos(), angles.sin()], 1)
    terms = losses.InstanceLoss(gamma=1.0).loss_terms(x, torch.tensor([0, 0, 1]))["loss"].losses
    right = math.e + math.exp(0.5)
    assert float(terms[0]) == pytest.approx(math.log((right + 1) / right), rel=1e-12)
