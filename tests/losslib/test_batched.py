"""The backward pass in chunks of anchors against the full one, over every loss."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from losslib import catalog
from losslib.base import BaseLoss, PairLoss
from losslib.distances import CosineSimilarity, LpDistance, SNRDistance
from losslib.errors import ParameterError, ShapeError
from losslib.kernels import plain
from losslib.losses import (
    ContrastiveLoss,
    CrossBatchMemory,
    DecoupledContrastiveLoss,
    MarginLoss,
    MultipleLosses,
    MultiSimilarityLoss,
    NTXentLoss,
    SupConLoss,
    TripletMarginLoss,
    anchor_batched_backward,
)
from losslib.reducers import (
    AvgNonZeroReducer,
    ClassWeightedReducer,
    DivisorReducer,
    DoNothingReducer,
    MeanReducer,
    MultipleReducers,
    PerAnchorReducer,
    Reducer,
    SumReducer,
    ThresholdReducer,
)
from losslib.regularizers import LpRegularizer
from losslib.terms import Term

SOURCE = torch.Generator().manual_seed(0)
X = torch.randn(13, 5, generator=SOURCE, dtype=torch.float64)
Y = torch.arange(13) % 4
R = torch.randn(9, 5, generator=SOURCE, dtype=torch.float64)
RY = torch.arange(9) % 5


def build(name: str, **options: Any) -> Any:
    given = {"num_classes": 6, "embedding_size": 5, "class_counts": [3] * 6}
    cls = catalog.get(name)
    torch.manual_seed(0)
    return cls(**{key: given[key] for key in cls.required if key in given}, **options).double()


class Results:
    """Value and gradients of a loss, in one go or in chunks."""

    def __init__(self, loss: Any, reference: bool, size: int | None) -> None:
        x, r = X.clone().requires_grad_(), R.clone().requires_grad_()
        loss.zero_grad()
        if size is None:
            self.value = loss(x, Y, None, r, RY) if reference else loss(x, Y)
            self.value.backward()
        else:
            given = {"ref_emb": r, "ref_labels": RY} if reference else {}
            self.value = anchor_batched_backward(loss, x, Y, size, **given)
            assert not self.value.requires_grad
            assert self.value.ndim == 0
        self.gradients = [x.grad, r.grad, *(p.grad for p in loss.parameters())]


def check(loss: Any, reference: bool, sizes: tuple[int, ...] = (1, 4, 13, 50)) -> None:
    full = Results(loss, reference, None)
    expected = [None if g is None else g.clone() for g in full.gradients]
    for size in sizes:
        parts = Results(loss, reference, size)
        torch.testing.assert_close(parts.value, full.value.detach(), rtol=1e-9, atol=1e-12)
        for found, wanted in zip(parts.gradients, expected, strict=True):
            assert (found is None) == (wanted is None)
            if wanted is not None:
                torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("name", list(catalog.losses()))
def test_every_loss_equals_its_full_backward_or_says_why_not(name: str, reference: bool) -> None:
    loss = build(name)
    try:
        Results(loss, reference, None)
    except ValueError:
        with pytest.raises(ValueError, match=name):  # it takes no such inputs at all
            Results(loss, reference, 4)
        return
    try:
        Results(loss, reference, 4)
    except ValueError as error:
        assert f"{name} does not split by anchor: " in str(error)  # noqa: PT017
        return
    check(loss, reference)


SPLIT = [
    "AngularLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "CosineEmbeddingLoss",
    "DecoupledContrastiveLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NTXentLoss",
    "SupConLoss",
    "ThresholdConsistentMarginLoss",
    "TripletLoss",
    "TripletMarginLoss",
]


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("name", SPLIT)
def test_these_are_not_refused(name: str, reference: bool) -> None:
    check(build(name), reference, (4,))


@pytest.mark.parametrize("rows", [60, 600])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("temperature", [0.1, 0.01, 0.002])
def test_weights_of_all_pairs_in_one_pass(rows: int, apart: bool, temperature: float) -> None:
    """What does not split by anchor is taken in blocks that know the mean of the weights."""
    generator = torch.Generator().manual_seed(0)
    x, r = torch.randn(2, rows, 20, generator=generator, dtype=torch.float64)
    y = torch.arange(rows) % 7
    loss = DecoupledContrastiveLoss(temperature=temperature, sigma=0.3)
    found = []
    for in_parts in (False, True):
        one, two = x.clone().requires_grad_(), r.clone().requires_grad_()
        given = {"ref_emb": two, "ref_labels": y.flip(0)} if apart else {}
        if in_parts:
            value = anchor_batched_backward(loss, one, y, 16, **given)
        else:
            with plain():
                value = loss(one, y, None, *given.values())
                value.backward()
        found.append([value.detach(), one.grad, two.grad if apart else one.grad])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize(
    "loss",
    [
        TripletMarginLoss(swap=True),
        TripletMarginLoss(smooth_loss=True),
        TripletMarginLoss(swap=True, smooth_loss=True, distance=CosineSimilarity()),
        ContrastiveLoss(squared=True, distance=LpDistance(normalize_embeddings=False)),
        ContrastiveLoss(1.0, 0.0, distance=CosineSimilarity()),
        NTXentLoss(distance=SNRDistance()),
        MarginLoss(nu=0.3, learn_beta=True),
        MarginLoss(nu=0.3, learn_beta=True, num_classes=4),
        MarginLoss(nu=0.3, learn_beta=True, beta=5.0, margin=0.1),
        MultiSimilarityLoss(embedding_regularizer=LpRegularizer(), embedding_reg_weight=0.3),
    ],
    ids=repr,
)
def test_options(loss: Any, reference: bool) -> None:
    check(loss.double(), reference)


@pytest.mark.parametrize(
    "reducer",
    [
        MeanReducer(),
        SumReducer(),
        AvgNonZeroReducer(),
        ThresholdReducer(low=0.2),
        ThresholdReducer(low=0.1, high=0.9),
        ClassWeightedReducer(torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64)),
        PerAnchorReducer(),
        PerAnchorReducer(reducer=AvgNonZeroReducer()),
        PerAnchorReducer(aggregation_func=lambda values, counts: values.sum(1) / counts.clamp_min(1).sqrt()),
        MultipleReducers({"pos_loss": SumReducer(), "loss": SumReducer()}, PerAnchorReducer()),
    ],
    ids=lambda reducer: type(reducer).__name__,
)
@pytest.mark.parametrize("cls", [ContrastiveLoss, TripletMarginLoss, SupConLoss])
def test_reducers(cls: Any, reducer: Reducer) -> None:
    check(cls(reducer=reducer).double(), False)
    check(cls(reducer=reducer).double(), True, (4,))


def test_divisor_reducer_by_name() -> None:
    check(MarginLoss(reducer=MultipleReducers({"loss": DivisorReducer()})).double(), False)


def test_it_reaches_the_model_and_adds_to_gradients() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3)).double()
    loss = NTXentLoss()
    loss(model(X), Y).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    anchor_batched_backward(loss, model(X), Y, 5)
    for parameter, once in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * once)
    model.zero_grad()
    # embeddings and references from one graph
    loss(model(X), Y, None, model(R), RY).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    both = model(torch.cat([X, R]))
    anchor_batched_backward(loss, both[:13], Y, 5, ref_emb=both[13:], ref_labels=RY)
    for parameter, once in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, once)


def test_one_tensor_as_both_sets() -> None:
    x, same = X.clone().requires_grad_(), X.clone().requires_grad_()
    SupConLoss()(x, Y, None, x, Y).backward()
    anchor_batched_backward(SupConLoss(), same, Y, 4, ref_emb=same, ref_labels=Y)
    torch.testing.assert_close(same.grad, x.grad)


@pytest.mark.parametrize("labels", [Y * 0, torch.arange(13)], ids=["one class", "all classes"])
@pytest.mark.parametrize("name", ["ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "MarginLoss"])
def test_nothing_to_do(name: str, labels: Tensor) -> None:
    loss = build(name)
    x, chunked = X.clone().requires_grad_(), X.clone().requires_grad_()
    value = loss(x, labels)
    value.backward()
    torch.testing.assert_close(anchor_batched_backward(loss, chunked, labels, 4), value.detach())
    torch.testing.assert_close(chunked.grad, x.grad)
    empty = X[:0].clone().requires_grad_()
    assert float(anchor_batched_backward(loss, empty, labels[:0], 4)) == 0
    assert empty.grad.shape == (0, 5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half(dtype: torch.dtype) -> None:
    low, chunked = (X.to(dtype).requires_grad_() for _ in range(2))
    value = SupConLoss()(low, Y)
    value.backward()
    torch.testing.assert_close(anchor_batched_backward(SupConLoss(), chunked, Y, 4), value.detach())
    assert chunked.grad.dtype == dtype
    torch.testing.assert_close(chunked.grad, low.grad)


def test_sampled_triplets_follow_the_seed() -> None:
    loss = TripletMarginLoss(margin=5.0, triplets_per_anchor=3, reducer=MeanReducer())
    results = []
    for _ in range(2):
        x = X.clone().requires_grad_()
        torch.manual_seed(3)
        results.append((float(anchor_batched_backward(loss, x, Y, 4)), x.grad))
    assert results[0][0] == results[1][0]
    torch.testing.assert_close(results[0][1], results[1][1])
    # a margin that no triplet keeps: the mean is linear, so its gradient sums to the counts drawn
    x = X.clone().requires_grad_()
    torch.manual_seed(3)
    loss(x, Y).backward()
    torch.manual_seed(3)
    whole = X.clone().requires_grad_()
    anchor_batched_backward(loss, whole, Y, 13)
    torch.testing.assert_close(whole.grad, x.grad)


class NeedsAll(Reducer):
    """Largest value: no sum over anchors."""

    def reduce(self, term: Term, embeddings: Tensor, labels: Tensor | None) -> Tensor:
        return term.losses.max()


class Centred(PairLoss):
    """A loss of somebody else, whose terms know of all anchors and which does not say so."""

    title, family = "Centred", "pair"

    def terms(self, pairs: Any) -> dict[str, Term]:
        from losslib.terms import reduced_term

        return {"loss": reduced_term(pairs.values.mean())}


class HeldAgainstTheMean(PairLoss):
    """Another: one value a pair, but held against the mean of all."""

    title, family = "Held against the mean", "pair"

    def terms(self, pairs: Any) -> dict[str, Term]:
        return {"loss": pairs.over_positives((pairs.values - pairs.values.mean()).square())}


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (HeldAgainstTheMean(), "HeldAgainstTheMean .* one anchor depend on the distances of others"),
        (
            DecoupledContrastiveLoss(sigma=0.5, distance=SNRDistance()),  # which has no fused form
            "with sigma its weights share one mean",
        ),
        (MultipleLosses([ContrastiveLoss()]), "takes one loss of losslib, got MultipleLosses"),
        (CrossBatchMemory(ContrastiveLoss(), 5), "takes one loss of losslib, got CrossBatchMemory"),
        (NTXentLoss(reducer=DoNothingReducer()), "DoNothingReducer gives no single number"),
        (NTXentLoss(reducer=NeedsAll()), "the reducer needs all values at once"),
        (Centred(), "Centred does not split by anchor: its term 'loss' is reduced over all anchors"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_refusals_name_the_reason_and_leave_no_gradient(loss: Any, message: str) -> None:
    x = X.clone().requires_grad_()
    with pytest.raises(ValueError, match=f"anchor_batched_backward: .*{message}"):
        anchor_batched_backward(loss, x, Y, 4)
    assert x.grad is None


def test_bad_inputs() -> None:
    x = X.clone().requires_grad_()
    for size in (0, -1, 1.5, True):
        with pytest.raises(ParameterError, match="batch_size must be a whole number >= 1"):
            anchor_batched_backward(NTXentLoss(), x, Y, size)
    with pytest.raises(ShapeError, match="NTXentLoss: labels must have shape"):
        anchor_batched_backward(NTXentLoss(), x, Y[:5], 4)
    with pytest.raises(ShapeError, match="ref_emb with labels needs ref_labels"):
        anchor_batched_backward(NTXentLoss(), x, Y, 4, ref_emb=R)
    with pytest.raises(ValueError, match="nothing given requires a gradient"):
        anchor_batched_backward(NTXentLoss(), X, Y, 4)


def test_a_learned_boundary_alone() -> None:
    loss = MarginLoss(nu=0.1, learn_beta=True).double()
    full = Results(loss, False, None)
    expected = full.gradients[2].clone()
    loss.zero_grad()
    anchor_batched_backward(loss, X, Y, 4)
    torch.testing.assert_close(loss.beta.grad, expected)


def test_every_declared_reason_is_a_phrase() -> None:
    reasons = [
        cls.not_by_anchor(build(name), reference)
        for name, cls in catalog.losses().items()
        for reference in (False, True)
        if issubclass(cls, BaseLoss)
    ]
    assert any(reasons)
    assert all(not reason or (reason[0].islower() and reason[-1] != ".") for reason in reasons)
