"""Which form a loss takes, and what goes with it: precision, second derivatives, compilation."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from losslib import distances, losses, reducers
from losslib.kernels import explain, plain
from losslib.kernels.choice import Situation, choose
from losslib.kernels.forms import kernels

FUSED = [cls for cls in kernels() if kernels()[cls].dense is not None]
SMOOTH = [
    losses.SupConLoss,
    losses.NTXentLoss,
    losses.DecoupledContrastiveLoss,
    losses.MultiSimilarityLoss,
    losses.NCALoss,
    losses.InstanceLoss,
]
every = pytest.mark.parametrize("cls", FUSED, ids=lambda cls: cls.__name__)


def batch(rows: int = 40, size: int = 64, seed: int = 0) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x, torch.arange(rows) % 5


def value_and_gradient(loss: Any, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    leaf = x.detach().clone().requires_grad_()
    value = loss(leaf, y)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


@pytest.mark.parametrize("rows", [40, 600])
@every
def test_single_precision(cls: Any, rows: int) -> None:
    x, y = batch(rows)
    exact_value, exact = value_and_gradient(cls(), x, y)
    value, gradient = value_and_gradient(cls(), x.float(), y)
    assert value.dtype == gradient.dtype == torch.float32
    assert value.item() == pytest.approx(exact_value.item(), rel=1e-5)
    # a hinge near a tie may open or close: no more than a triplet or two of thousands
    assert (gradient.double() - exact).norm() <= (1e-4 if cls in SMOOTH else 1e-3) * exact.norm()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@every
def test_half_precision_is_computed_in_single(cls: Any, dtype: torch.dtype) -> None:
    x, y = batch()
    narrow = x.to(dtype)
    value, gradient = value_and_gradient(cls(), narrow, y)
    wide_value, wide = value_and_gradient(cls(), narrow.float(), y)
    assert gradient.dtype == dtype
    assert value.item() == wide_value.item()
    torch.testing.assert_close(gradient, wide.to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("rows", [40, 600])
def test_zero_rows_on_the_margin_count_for_nothing(rows: int) -> None:
    x = torch.eye(rows)  # all negatives lie beyond the margin
    x[0] = 0  # at distance 1, on it
    x[1] = x[2]  # at distance 0, a hinge of 1
    assert losses.ContrastiveLoss()(x, torch.arange(rows)).item() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("rows", [12, 330])
@pytest.mark.parametrize("cls", SMOOTH, ids=lambda cls: cls.__name__)
def test_second_derivatives_come_from_the_plain_form(cls: Any, rows: int) -> None:
    def second(x: Tensor, y: Tensor) -> Tensor:
        leaf = x.detach().clone().requires_grad_()
        (first,) = torch.autograd.grad(cls()(leaf, y), leaf, create_graph=True)
        return torch.autograd.grad(first.square().sum(), leaf)[0]

    x, y = batch(rows, 4)
    found = second(x, y)
    with plain():
        torch.testing.assert_close(found, second(x, y), rtol=1e-8, atol=1e-12)
    assert found.any()


def test_plain_holds_inside_and_ends_after_an_error() -> None:
    loss = losses.SupConLoss()
    assert explain(loss, 100).startswith("SupConLoss: dense form, because")
    said = []

    def failing() -> None:
        with plain():
            said.append(explain(loss, 100))
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert said == ["SupConLoss: plain form, because losslib.kernels.plain() is in force"]
    assert explain(loss, 100).startswith("SupConLoss: dense form, because")


@pytest.mark.parametrize(
    ("loss", "here", "form", "reason"),
    [
        (losses.SupConLoss(), Situation(1000), "blocked", "above 512 rows"),
        (losses.SupConLoss(temperature=0.02), Situation(450), "blocked", "above 384 rows"),
        (losses.SupConLoss(temperature=0.002), Situation(1000), "rows", "logits span 1e+03, more than 640"),
        (losses.SupConLoss(temperature=0.01), Situation(200), "dense", "up to 384 rows"),
        (losses.SupConLoss(temperature=0.01), Situation(4096), "blocked", "above 384 rows"),
        (losses.SupConLoss(temperature=0.01), Situation(5000), "rows", "logits span 200, and blocks keep"),
        (losses.CircleLoss(gamma=256), Situation(5000), "rows", "logits span 256, and blocks keep"),
        (losses.MultiSimilarityLoss(beta=200), Situation(5000), "rows", "for up to 4,096 rows"),
        (losses.NCALoss(softmax_scale=30), Situation(5000), "rows", "for up to 4,096 rows"),
        (losses.MultiSimilarityLoss(), Situation(5000), "blocked", "above 512 rows"),
        (losses.NTXentLoss(), Situation(1000, 5000), "rows", "references are a set of their own"),
        (losses.NTXentLoss(), Situation(1000, 5000, device="cuda"), "dense", "static"),
        (losses.DecoupledContrastiveLoss(sigma=0.5), Situation(1000), "blocked", "above 384 rows"),
        (losses.CircleLoss(gamma=900), Situation(1000), "rows", "logits span 900, more than 640"),
        (losses.MultiSimilarityLoss(), Situation(1000, 5000), "rows", "references are a set of their own"),
        (losses.NCALoss(), Situation(1000), "blocked", "above 512 rows"),
        (losses.NCALoss(softmax_scale=225), Situation(1000), "rows", "logits span 900, more than 640"),
        (losses.SupConLoss(), Situation(1000, device="cuda"), "dense", "static"),
        (losses.SupConLoss(), Situation(1000, 50), "dense", "references are a set of their own"),
        (losses.SupConLoss(), Situation(1000, labelled=False), "dense", "not whole numbers"),
        (losses.SupConLoss(), Situation(1000, tuples=True), "plain", "pairs are given by index"),
        (losses.SupConLoss(), Situation(1), "plain", "no pairs"),
        (losses.SupConLoss(distance=distances.LpDistance(p=1)), Situation(9), "plain", "Euclidean distances"),
        (losses.SupConLoss(distance=distances.DotProductSimilarity()), Situation(9), "rows", "no bound"),
        (
            losses.SupConLoss(distance=distances.DotProductSimilarity()),
            Situation(9, labelled=False),
            "plain",
            "no bound",
        ),
        (losses.SupConLoss(reducer=reducers.PerAnchorReducer()), Situation(9), "plain", "PerAnchorReducer"),
        (losses.TripletMarginLoss(), Situation(200), "blocked", "above 128 rows"),
        (losses.TripletMarginLoss(swap=True), Situation(100), "plain", "no shortcut"),
        (losses.MarginLoss(triplets_per_anchor=3), Situation(100), "plain", "drawn at random"),
        (losses.MarginLoss(num_classes=3), Situation(1000), "rows", "its own beta"),
        (losses.ContrastiveLoss(squared=True), Situation(1000), "rows", "no form in blocks"),
        (losses.ContrastiveLoss(), Situation(1000, 5000), "rows", "references are a set of their own"),
        (losses.NPairsLoss(), Situation(100), "own", "two rows of each class"),
        (losses.LiftedStructureLoss(), Situation(100), "plain", "no fused form"),
        (losses.AngularLoss(alpha=80.0), Situation(100), "plain", "too wide"),
        (losses.AngularLoss(), Situation(1000), "blocked", "above 256 rows"),
        (losses.GeneralizedLiftedStructureLoss(), Situation(2000), "rows", "memory linear"),
        (losses.AngularLoss(), Situation(100, 50), "plain", "references are a set of their own"),
    ],
    ids=lambda v: "",
)
def test_the_form_and_its_reason(loss: Any, here: Situation, form: str, reason: str) -> None:
    choice = choose(loss, here)
    assert choice.form == form
    assert reason in choice.reason


def test_a_subclass_with_terms_of_its_own_stays_plain() -> None:
    class Half(losses.ContrastiveLoss):
        def terms(self, pairs: Any) -> Any:
            found = super().terms(pairs)
            return {"neg_loss": found["neg_loss"]}

    x, y = batch()
    whole = losses.ContrastiveLoss().loss_terms(x, y)
    negatives = reducers.AvgNonZeroReducer()({"neg_loss": whole["neg_loss"]}, x, y)
    assert Half()(x, y).item() == pytest.approx(negatives.item())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@every
def test_the_dense_form_compiles_whole(cls: Any) -> None:
    torch.compiler.reset()
    x, y = batch()
    compiled = torch.compile(cls(), fullgraph=True, backend="aot_eager")
    value, gradient = value_and_gradient(compiled, x, y)
    with plain():
        expected_value, expected = value_and_gradient(cls(), x, y)
    assert value.item() == pytest.approx(expected_value.item(), rel=1e-6)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-9)


@every
def test_no_value_is_looked_at_in_the_dense_form(cls: Any) -> None:
    with FakeTensorMode():  # a value that is looked at has none here
        x, y = torch.randn(500, 64, requires_grad=True), torch.zeros(500, dtype=torch.int64)
        loss = cls()
        value = loss(x, y)
        value.backward()
        assert value.shape == ()
        assert x.grad is not None
        assert x.grad.shape == x.shape
    with FakeTensorMode(allow_non_fake_inputs=False), torch.device("cuda"):
        x, y = torch.empty(500, 64), torch.empty(500, dtype=torch.int64)
        assert cls()(x, y).device.type == "cuda"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("rows", [64, 1000])
@every
def test_on_a_gpu_equals_double_precision_on_the_cpu(cls: Any, rows: int) -> None:
    x, y = batch(rows)
    exact_value, exact = value_and_gradient(cls(), x, y)
    loss, x, y = cls().cuda(), x.float().cuda(), y.cuda()
    value_and_gradient(loss, x, y)  # first-use work may wait for the device
    torch.cuda.set_sync_debug_mode("error")
    try:
        value, gradient = value_and_gradient(loss, x, y)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert value.item() == pytest.approx(exact_value.item(), rel=1e-5)
    assert (gradient.cpu().double() - exact).norm() <= 1e-3 * exact.norm()


def test_an_option_set_later_counts_at_once() -> None:
    x, y = torch.randn(24, 40, generator=torch.Generator().manual_seed(3)), torch.arange(24) % 4
    loss = losses.ContrastiveLoss()
    parts = {
        "p": lambda: setattr(loss.distance, "p", 1.0),  # the plain form
        "power": lambda: setattr(loss.distance, "power", 0.5),
        "distance": lambda: setattr(loss, "distance", distances.LpDistance(normalize_embeddings=False)),
        "reducer": lambda: setattr(loss, "reducer", reducers.PerAnchorReducer()),
        "margin": lambda: setattr(loss, "neg_margin", 7.0),
        "again": lambda: setattr(loss, "reducer", reducers.MeanReducer()),
    }
    last = loss(x, y).item()
    for name, change in parts.items():
        change()
        value = loss(x, y).item()
        fresh = losses.ContrastiveLoss(
            neg_margin=loss.neg_margin, distance=loss.distance, reducer=loss.reducer
        )
        assert value == fresh(x, y).item(), name
        assert value != last, name
        with plain():
            assert loss(x, y).item() == pytest.approx(value, rel=1e-5), name
        last = value
