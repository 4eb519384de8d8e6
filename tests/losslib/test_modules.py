"""Losses as modules: copies, precision, compilation, fake tensors, random numbers, pair weights."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from losslib import catalog
from losslib.base import PairLoss
from losslib.distances import CosineSimilarity, LpDistance
from losslib.kernels import plain
from losslib.losses import ContrastiveLoss, MarginLoss, NTXentLoss, SupConLoss, TripletMarginLoss
from losslib.reducers import DoNothingReducer

NAMES = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss)]
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in NAMES),
    ("ContrastiveLoss", {"squared": True}),
    ("DecoupledContrastiveLoss", {"sigma": 0.5}),
    ("TripletMarginLoss", {"swap": True, "smooth_loss": True}),
    ("MarginLoss", {"nu": 0.1, "learn_beta": True, "num_classes": 4}),
]
every = pytest.mark.parametrize("name", NAMES)
variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)


def batch(dtype: torch.dtype = torch.float32, rows: int = 12) -> tuple[Tensor, Tensor]:
    x = torch.randn(rows, 5, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    return x.to(dtype).requires_grad_(), torch.arange(rows) % 4


@variant
def test_copies(name: str, options: dict[str, Any]) -> None:
    x, y = batch()
    loss = catalog.get(name)(**options)
    before = copy.deepcopy(loss)
    value = loss(x, y)
    value.backward()
    for other in (before, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert other(x, y).item() == value.item()
    fresh = catalog.get(name)(**options)
    fresh.load_state_dict(loss.state_dict())
    assert fresh(x, y).item() == value.item()


@variant
def test_no_random_numbers_are_drawn(name: str, options: dict[str, Any]) -> None:
    x, y = batch()
    state = torch.get_rng_state()
    loss = catalog.get(name)(**options)
    assert loss(x, y).item() == loss(x, y).item()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("name", "options"), [(n, o) for n, o in VARIANTS if not catalog.get(n).stop_gradient], ids=str
)
def test_second_derivatives(name: str, options: dict[str, Any]) -> None:
    x, y = batch(torch.float64, rows=8)
    loss = catalog.get(name)(**options).double()
    assert torch.autograd.gradcheck(lambda z: loss(z, y), x)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, y), x)


@variant
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_types(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    x, y = batch(dtype)
    loss = catalog.get(name)(**options).to(dtype)
    exact = catalog.get(name)(**options).double()
    if options.get("learn_beta"):
        exact.load_state_dict(loss.state_dict())  # a learned beta counts as rounded, a fixed one is 1.2
    value, wide = loss(x, y), exact(x.detach().double(), y)
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(wide.item(), rel=2e-3, abs=1e-5)
    value.backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype
    assert bool(x.grad.isfinite().all())


@every
def test_autocast_changes_nothing(name: str) -> None:
    x, y = batch()
    loss = catalog.get(name)()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = loss(x, y)
    assert inside.item() == loss(x, y).item()
    assert torch.autograd.grad(inside, x)[0].equal(torch.autograd.grad(loss(x, y), x)[0])


@every
@pytest.mark.parametrize("rows", [0, 1])
def test_batches_of_none_and_one(name: str, rows: int) -> None:
    x, y = batch(rows=rows)
    value = catalog.get(name)()(x, y)
    value.backward()
    assert value.item() == 0.0
    assert x.grad is not None
    assert not x.grad.any()


@variant
def test_functional_gradients(name: str, options: dict[str, Any]) -> None:
    x, y = batch()
    loss = catalog.get(name)(**options)
    plain = torch.autograd.grad(loss(x, y), x)[0]
    torch.testing.assert_close(torch.func.grad(lambda z: loss(z, y))(x.detach()), plain)


@variant
def test_fake_tensors(name: str, options: dict[str, Any]) -> None:
    with FakeTensorMode():
        loss = catalog.get(name)(**options)
        y = torch.zeros(8, dtype=torch.int64)
        x = torch.randn(8, 4, requires_grad=True)
        loss(x, y).backward()
        if name not in (
            "MarginLoss",
            "DynamicSoftMarginLoss",
        ):  # its buffer cannot be moved there by a build without CUDA
            on_gpu = torch.randn(8, 4, device="cuda")
            assert loss(on_gpu, y.to("cpu")).device.type == "cuda"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ContrastiveLoss", {}),
        ("SupConLoss", {}),
        ("TripletMarginLoss", {}),
        ("MarginLoss", {"learn_beta": True}),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_compiles_whole(name: str, options: dict[str, Any]) -> None:
    x, y = batch()
    loss = catalog.get(name)(**options)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, y), loss(x, y))
    torch.testing.assert_close(*(torch.autograd.grad(f(x, y), x)[0] for f in (compiled, loss)))


class TestPairWeights:
    @every
    def test_they_are_the_gradient_of_the_distances(self, name: str) -> None:
        x, y = batch(torch.float64)
        loss = catalog.get(name)().double()
        weights = loss.pair_weights(x, y)
        values = loss.distance(x)
        torch.testing.assert_close(weights.values, values.detach())
        through = torch.autograd.grad((values * weights.weights).sum(), x)[0]
        torch.testing.assert_close(through, torch.autograd.grad(loss(x, y), x)[0])
        if "pair weights" in getattr(loss, "not_claimed", {}) or name == "FastAPLoss":
            return  # their signs are not those of a pull and a push, for the reasons they give
        assert not weights.weights[(weights.positive | weights.negative).logical_not()].any()
        pull = weights.weights if not loss.distance.is_inverted else -weights.weights
        if name in ("SupConLoss", "MultiSupConLoss"):  # its positives compete: only their sum must pull
            pull = torch.where(weights.positive, (pull * weights.positive).sum(1, keepdim=True), pull)
        assert float(pull[weights.positive].min()) >= 0
        assert float(pull[weights.negative].max()) <= 0

    def test_active_pairs_of_a_hinge(self) -> None:
        x = torch.tensor([[0.0], [0.5], [0.25], [2.0]])
        loss = ContrastiveLoss(distance=LpDistance(normalize_embeddings=False))
        weights = loss.pair_weights(x, torch.tensor([0, 0, 1, 1]))
        assert weights.weights[0].tolist() == pytest.approx([0, 0.25, -0.25, 0])
        assert weights.active[0].tolist() == [False, True, True, False]
        assert weights.active_share.item() == pytest.approx(8 / 12)

    def test_active_pairs_of_a_softmax(self) -> None:
        x = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8], [-1.0, 0.0]])
        weights = NTXentLoss(temperature=0.1).pair_weights(x, torch.tensor([0, 0, 1, 2]))
        assert weights.active[0].tolist() == [False, True, True, False]  # the opposite row weighs e^-16

    def test_a_smooth_hinge_is_active_as_a_softmax_is(self) -> None:
        x = torch.tensor([[0.0], [0.0], [1.0], [10.0]])
        y = torch.tensor([0, 0, 1, 2])
        loss = TripletMarginLoss(distance=LpDistance(normalize_embeddings=False), smooth_loss=True)
        # of anchor 0: sigmoid(0.2 - 1) = 0.31 for the negative at 1, sigmoid(0.2 - 10) = 6e-5 for that at 10
        weights = loss.pair_weights(x, y)
        assert bool((weights.weights[0, 1:] != 0).all())
        assert weights.active[0].tolist() == [False, True, True, False]
        loss.smooth_loss = False  # 0.2 - 1 < 0: nothing is left of a true hinge
        assert not loss.pair_weights(x, y).active[0].any()

    def test_no_pairs_have_no_share(self) -> None:
        weights = SupConLoss().pair_weights(torch.randn(1, 3), torch.zeros(1))
        assert bool(weights.active_share.isnan())

    def test_inside_no_grad_and_with_references(self) -> None:
        x, y = batch()
        with torch.no_grad():
            weights = TripletMarginLoss().pair_weights(x, y, None, x[:5].detach(), y[:5])
        assert weights.weights.shape == (12, 5)
        assert weights.weights.any()

    def test_a_swap_weighs_the_pair_it_took(self) -> None:
        x, y = batch(torch.float64)
        loss = TripletMarginLoss(swap=True)
        values = loss.distance(x)
        through = torch.autograd.grad((values * loss.pair_weights(x, y).weights).sum(), x)[0]
        torch.testing.assert_close(through, torch.autograd.grad(loss(x, y), x)[0])

    def test_a_reducer_without_a_number(self) -> None:
        with pytest.raises(
            ValueError, match="pair weights need a reducer that gives one number, got DoNothing"
        ):
            NTXentLoss(reducer=DoNothingReducer()).pair_weights(*batch())


@pytest.mark.parametrize("temperature", [1e-3, 0.005, 0.01, 100.0])
@pytest.mark.parametrize("cls", [NTXentLoss, SupConLoss])
def test_any_temperature(cls: Any, temperature: float) -> None:
    x, y = batch()
    value = cls(temperature=temperature)(x, y)
    exact = cls(temperature=temperature)(x.detach().double(), y)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    value.backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_a_large_batch_of_triplets_stays_small_in_memory() -> None:
    count = 601  # 71 million triplets of classes of two sizes: 850 MB written out
    x = torch.randn(count, 8, requires_grad=True)
    y = torch.arange(count) % 3
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, Tensor) and out.dtype != torch.uint8:  # memory kept, of which others are views
                largest = max(largest, out.numel())
            return out

    for loss in (TripletMarginLoss(), MarginLoss(), TripletMarginLoss(distance=CosineSimilarity())):
        with Watch():
            loss(x, y).backward()
    assert 128 * count <= largest < count * count  # blocks of rows
    for loss in (TripletMarginLoss(), MarginLoss(), TripletMarginLoss(distance=CosineSimilarity())):
        with Watch(), plain():
            loss(x, y).backward()
    assert count * count <= largest <= 2 * (count + 1) * count
