"""Losses over two views: values and gradients by the oracles, what they refuse, precision, copies."""

import copy
import math
import pickle
from typing import Any

import pytest
import torch
from pytorch_metric_learning import losses as pml
from torch import Tensor

from losslib import catalog, losses
from losslib.check import audit
from losslib.distances import CosineSimilarity, LpDistance
from losslib.errors import ShapeError
from losslib.reducers import MeanReducer
from tests.contract.inputs import rows
from tests.contract.registered import EVERY_LOSS, build, label_of, variants
from tests.oracles import oracle

TWO_VIEWS = [name for name in EVERY_LOSS if "two views" in catalog.get(name).needs]
every = pytest.mark.parametrize("name", TWO_VIEWS)


def views(count: int, seed: int = 600) -> tuple[Tensor, Tensor]:
    x = rows(count, seed)
    return x, x + 0.4 * rows(count, seed + 1)


def coincident() -> tuple[Tensor, Tensor]:
    x, _ = views(6)
    return x.clone(), x.clone()


def one_column_constant() -> tuple[Tensor, Tensor]:
    x, y = views(6)
    x[:, 1] = 2.5
    return x, y


KINDS = {
    "several": lambda: views(7),
    "two": lambda: views(2),
    "coincident": coincident,
    "constant column": one_column_constant,
}


def expected(name: str, x: Tensor, y: Tensor, options: dict[str, Any]) -> Tensor:
    labels = torch.arange(len(x))
    return oracle(name).value(x, labels, None, y, labels, options=options)


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        pytest.param(name, options, kind, id=f"{name}-{label_of(options)}-{kind}")
        for name in TWO_VIEWS
        for options in variants(name)
        for kind in KINDS
    ],
)
def test_value_and_gradients_are_the_equation_s(name: str, options: dict[str, Any], kind: str) -> None:
    given = KINDS[kind]()
    loss = build(name, options)
    leaves = [view.clone().requires_grad_() for view in given]
    others = [view.clone().requires_grad_() for view in given]
    value, want = loss(leaves[0], ref_emb=leaves[1]), expected(name, *others, options)
    assert value.dtype == torch.float64
    torch.testing.assert_close(value, want, rtol=1e-9, atol=1e-11)
    found = torch.autograd.grad(value, leaves)
    slopes = torch.autograd.grad(want, others, allow_unused=True, materialize_grads=True)
    for got, slope in zip(found, slopes, strict=True):
        scale = float(slope.abs().max())
        torch.testing.assert_close(got, slope, rtol=1e-7, atol=1e-8 * max(scale, 1e-3))


@every
def test_the_terms_are_the_equation_s(name: str) -> None:
    x, y = views(5)
    labels = torch.arange(5)
    terms = build(name).loss_terms(x, ref_emb=y)
    wanted = oracle(name).terms(x, labels, None, y, labels)
    assert list(terms) == list(wanted)
    for term, want in zip(terms.values(), wanted.values(), strict=True):
        values = torch.stack(want.values).detach()
        torch.testing.assert_close(term.losses.detach().reshape(-1), values, rtol=1e-9, atol=1e-12)
        assert (term.indices is None) == want.reduced


@every
def test_the_audit_passes(name: str) -> None:
    report = audit(catalog.get(name)())
    assert report.failed == (), str(report)
    assert sum(check.status == "passed" for check in report.checks) >= 18


@every
def test_what_does_not_fit_is_refused(name: str) -> None:
    x, y = views(4)
    loss, labels = build(name), torch.arange(4)
    with pytest.raises(ValueError, match=f"{name}: takes no labels, because.*ref_emb=other_view"):
        loss(x, labels, ref_emb=y)
    with pytest.raises(ValueError, match=f"{name}: takes no labels"):
        loss(x, y)
    with pytest.raises(ValueError, match=f"{name}: takes no labels"):
        loss(x, ref_emb=y, ref_labels=labels)
    with pytest.raises(ValueError, match=f"{name}: takes no indices_tuple, because"):
        loss(x, None, (labels, labels, labels), y)
    with pytest.raises(ShapeError, match=f"{name}: ref_emb must be the second view.*None"):
        loss(x)
    with pytest.raises(ShapeError, match=f"{name}: ref_emb must have 4 rows.*got 3"):
        loss(x, ref_emb=y[:3])
    with pytest.raises(ShapeError, match=f"{name}: ref_emb must have 4 columns.*got 3"):
        loss(x, ref_emb=y[:, :3])
    with pytest.raises(ShapeError, match=f"{name}: ref_emb must be torch.float64"):
        loss(x, ref_emb=y.float())


@every
def test_no_rows_cost_nothing_and_leave_a_gradient_path(name: str) -> None:
    x, y = (view.requires_grad_() for view in views(0))
    value = build(name)(x, ref_emb=y)
    value.backward()
    assert float(value.detach()) == 0.0
    assert x.grad is not None
    assert x.grad.shape == (0, 4)


def test_one_row_has_only_what_one_pair_can_give() -> None:
    x, y = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])  # cosine 0.96, squared distance 0.08
    found = {name: float(catalog.get(name)()(x, ref_emb=y).detach()) for name in TWO_VIEWS}
    assert found["VICRegLoss"] == pytest.approx(25 * (1 + 1) / 2)
    assert found["BarlowTwinsLoss"] == 0.0
    assert found["SigLIPLoss"] == pytest.approx(math.log1p(math.exp(10 - 9.6)), rel=1e-6)
    assert found["AlignmentUniformityLoss"] == pytest.approx(0.08, rel=1e-6)


def test_the_examples_of_the_docstrings() -> None:
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert float(losses.AlignmentUniformityLoss()(opposite, ref_emb=opposite)) == pytest.approx(-8.0)
    one = torch.tensor([[1.0, 0.0]])
    assert float(losses.SigLIPLoss()(one, ref_emb=one).detach()) == pytest.approx(math.log(2), rel=1e-6)
    apart = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    assert float(losses.BarlowTwinsLoss()(apart, ref_emb=apart)) == pytest.approx(0.0, abs=1e-12)
    equal = apart[:, :1].expand(4, 2)
    assert float(losses.BarlowTwinsLoss()(equal, ref_emb=equal)) == pytest.approx(0.01)
    assert float(losses.VICRegLoss()(apart, ref_emb=apart)) == pytest.approx(0.0, abs=1e-12)


def test_vicreg_equals_pml() -> None:
    x, y = (0.5 * view for view in views(7))
    options = {"invariance_lambda": 3.0, "variance_mu": 5.0, "covariance_v": 2.0, "eps": 1e-3}
    want = pml.VICRegLoss(**options)(x, ref_emb=y)
    torch.testing.assert_close(losses.VICRegLoss(**options)(x, ref_emb=y), want, rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    ("options", "size", "want"),
    [
        # the spread is above 1, and the views are 2 s apart in each coordinate
        ({"covariance_v": 0}, 1e12, 25 * 4e24),
        ({"covariance_v": 0}, 1e17, 25 * 4e34),
        ({"covariance_v": 0, "invariance_lambda": 0}, 1e25, 0.0),
        ({}, 1e20, math.inf),
    ],
)
def test_vicreg_without_what_single_precision_cannot_hold(
    options: dict[str, Any], size: float, want: float
) -> None:
    x = size * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    value = losses.VICRegLoss(**options)(x, ref_emb=x * torch.tensor([3.0, -1.0]))
    assert value.item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize(("size", "want"), [(1e9, 8e36), (1e20, math.inf)])
def test_vicreg_of_large_correlated_coordinates(size: float, want: float) -> None:
    x = size * torch.tensor([[1.0, 1.0], [-1.0, -1.0]])  # every covariance is 2 s^2; 2 views, 2 orders
    assert losses.VICRegLoss()(x, ref_emb=x).item() == pytest.approx(want, rel=1e-5)


def test_parts_that_have_no_meaning() -> None:
    with pytest.raises(TypeError, match=r"VICRegLoss.*reducer"):
        losses.VICRegLoss(reducer=MeanReducer())
    with pytest.raises(TypeError, match=r"SigLIPLoss: distance must be a similarity"):
        losses.SigLIPLoss(distance=LpDistance())
    with pytest.raises(TypeError, match=r"AlignmentUniformityLoss: distance must be a distance"):
        losses.AlignmentUniformityLoss(distance=CosineSimilarity())


def test_siglip_learns_its_scale_and_bias() -> None:
    loss = build("SigLIPLoss")
    x, y = views(5)
    loss(x, ref_emb=y).backward()
    scale = torch.tensor(math.log(10.0), dtype=torch.float64, requires_grad=True)
    bias = torch.tensor(-10.0, dtype=torch.float64, requires_grad=True)
    expected("SigLIPLoss", x, y, {"log_scale": scale, "bias": bias}).backward()
    assert float(loss.log_scale.grad) == pytest.approx(float(scale.grad), rel=1e-6)
    assert float(loss.bias.grad) == pytest.approx(float(bias.grad), rel=1e-6)
    with pytest.raises(ValueError, match="SigLIPLoss: log_scale must match"):
        loss(x.float(), ref_emb=y.float())


@every
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    x, y = (view.to(dtype) for view in views(16))
    value = catalog.get(name)().to(dtype)(x, ref_emb=y)
    assert value.dtype == torch.float32
    exact = build(name)
    if name == "SigLIPLoss":  # its scale is rounded to the narrow type
        exact.load_state_dict(catalog.get(name)().to(dtype).state_dict())
    want = exact(x.double(), ref_emb=y.double()).detach()
    assert float(value.detach()) == pytest.approx(float(want), rel=2e-3, abs=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@every
def test_copies_compile_and_second_derivatives(name: str) -> None:
    x, y = views(5)
    loss = build(name)
    value = float(loss(x, ref_emb=y).detach())
    for other in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert float(other(x, ref_emb=y).detach()) == value
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert float(compiled(x, ref_emb=y).detach()) == pytest.approx(value, rel=1e-9)
    leaves = (x.clone().requires_grad_(), y.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: loss(a, ref_emb=b), leaves)
    assert torch.autograd.gradgradcheck(lambda a, b: loss(a, ref_emb=b), leaves)
