"""Reducers on values whose result can be read off."""

from collections.abc import Callable
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from losslib.errors import ParameterError
from losslib.losses import ContrastiveLoss, MarginLoss, TripletMarginLoss
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
from losslib.terms import DenseTerm, Term

X = torch.zeros(4, 2)
VALUES = torch.tensor([3.0, 0.0, -1.0, 5.0, 0.0])


def pairs(values: Tensor = VALUES) -> dict[str, object]:
    return {"losses": values, "indices": (torch.tensor([0, 0, 1, 3, 3]), torch.tensor([1, 2, 0, 0, 1]))}


@pytest.mark.parametrize(
    ("reducer", "expected"),
    [
        (MeanReducer(), 1.4),
        (SumReducer(), 7.0),
        (AvgNonZeroReducer(), 4.0),
        (ThresholdReducer(low=-2), 1.4),
        (ThresholdReducer(low=0), 4.0),
        (ThresholdReducer(high=0), -1.0),
        (ThresholdReducer(low=0, high=5), 3.0),
        (ThresholdReducer(low=7), 0.0),
        (PerAnchorReducer(), (1.5 + -1.0 + 0.0 + 2.5) / 4),
        (PerAnchorReducer(reducer=SumReducer()), 3.0),
        (PerAnchorReducer(AvgNonZeroReducer()), 2.0),
        (PerAnchorReducer(aggregation_func=lambda values, count: values.sum(1)), 7 / 4),
        (MultipleReducers({"loss": SumReducer()}), 7.0),
        (MultipleReducers({"other": SumReducer()}), 1.4),
        (MultipleReducers({"other": SumReducer()}, default_reducer=AvgNonZeroReducer()), 4.0),
    ],
    ids=repr,
)
def test_values(reducer: Reducer, expected: float) -> None:
    assert float(reducer({"loss": pairs()}, X, None)) == pytest.approx(expected)
    dense = torch.zeros(4, 3)
    mask = torch.zeros(4, 3, dtype=torch.bool)
    at = pairs()["indices"]
    dense[at], mask[at] = VALUES, True  # type: ignore[index]
    assert float(reducer({"loss": DenseTerm(dense, mask)}, X, None)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "reducer",
    [MeanReducer(), SumReducer(), AvgNonZeroReducer(), ThresholdReducer(low=0), PerAnchorReducer()],
    ids=repr,
)
def test_nothing_gives_zero_with_a_path(reducer: Reducer) -> None:
    x = torch.zeros(3, 2, requires_grad=True)
    none = torch.zeros(0, dtype=torch.int64)
    result = reducer({"loss": {"losses": (x @ x.T)[none, none], "indices": (none, none)}}, x, None)
    assert result.item() == 0.0
    result.backward()
    assert x.grad is not None
    assert not x.grad.any()


def test_terms_are_reduced_one_by_one_and_added() -> None:
    terms = {"a": pairs(), "b": pairs(VALUES + 2), "c": {"losses": torch.tensor(10.0), "indices": None}}
    assert float(AvgNonZeroReducer()(terms, X, None)) == pytest.approx(4.0 + (5 + 2 + 1 + 7 + 2) / 5 + 10)


def test_class_weights_follow_the_anchor() -> None:
    labels = torch.tensor([1, 0, 0, 2])
    reducer = ClassWeightedReducer(torch.tensor([1.0, 10.0, 100.0]))
    expected = (10 * 3 + 10 * 0 + 1 * -1 + 100 * 5 + 100 * 0) / 5
    assert float(reducer({"loss": pairs()}, X, labels)) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2"):
        reducer({"loss": pairs()}, X, torch.tensor([1, 0, 3, 2]))
    with pytest.raises(ValueError, match="needs the anchors' labels"):
        reducer({"loss": pairs()}, X, None)
    with pytest.raises(ParameterError):
        ClassWeightedReducer(torch.ones(2, 2))


def test_class_weights_on_every_kind_of_term() -> None:
    x = torch.randn(9, 3, dtype=torch.float64)
    y = torch.arange(9) % 3
    weights = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    lazy = TripletMarginLoss(reducer=ClassWeightedReducer(weights))(x, y)
    term = TripletMarginLoss().loss_terms(x, y)["loss"]
    torch.testing.assert_close(lazy, (term.losses * weights[y[term.indices.anchors]]).mean())


def test_per_anchor_matches_what_pml_does_with_pairs() -> None:
    from pytorch_metric_learning import losses as pml
    from pytorch_metric_learning import reducers as pml_reducers

    x, y = torch.randn(10, 4, dtype=torch.float64), torch.arange(10) % 3
    ours = ContrastiveLoss(reducer=PerAnchorReducer(AvgNonZeroReducer()))(x, y)
    theirs = pml.ContrastiveLoss(reducer=pml_reducers.PerAnchorReducer(pml_reducers.AvgNonZeroReducer()))(
        x, y
    )
    torch.testing.assert_close(ours, theirs)


def test_per_anchor_with_triplets_and_an_aggregation() -> None:
    x, y = torch.randn(8, 3, dtype=torch.float64), torch.arange(8) % 3

    def largest(values: Tensor, count: Tensor) -> Tensor:
        return values.amax(1)

    result = TripletMarginLoss(reducer=PerAnchorReducer(SumReducer(), largest))(x, y)
    term = TripletMarginLoss().loss_terms(x, y)["loss"]
    rows = [term.losses[term.indices.anchors == a] for a in range(8)]
    torch.testing.assert_close(result, sum(row.max() for row in rows if len(row)))


class TestDivisor:
    term: ClassVar = {
        "losses": torch.tensor([2.0, 4.0]),
        "indices": torch.tensor([0, 1]),
        "divisor": torch.tensor(3),
    }

    def test_sum_over_divisor(self) -> None:
        assert float(DivisorReducer()({"loss": self.term}, X, None)) == 2.0
        nothing = {**self.term, "losses": torch.zeros(2), "divisor": torch.tensor(0)}
        assert float(DivisorReducer()({"loss": nothing}, X, None)) == 0.0

    @pytest.mark.parametrize(
        "reducer",
        [
            MeanReducer(),
            SumReducer(),
            AvgNonZeroReducer(),
            ThresholdReducer(low=0),
            PerAnchorReducer(),
            ClassWeightedReducer(torch.ones(2)),
            MultipleReducers({"other": DivisorReducer()}),
        ],
        ids=lambda r: type(r).__name__,
    )
    def test_any_other_reducer_is_refused(self, reducer: Reducer) -> None:
        with pytest.raises(ValueError, match="term 'loss' has a divisor and needs DivisorReducer"):
            reducer({"loss": self.term}, X, torch.tensor([0, 1, 0, 1]))
        with pytest.raises(ValueError, match="DivisorReducer"):
            MarginLoss(reducer=reducer)(torch.randn(6, 2), torch.arange(6) % 2)

    def test_through_multiple_reducers(self) -> None:
        x, y = torch.randn(6, 2), torch.arange(6) % 2
        named = MarginLoss(reducer=MultipleReducers({"loss": DivisorReducer()}))
        torch.testing.assert_close(named(x, y), MarginLoss()(x, y))

    def test_a_term_without_divisor(self) -> None:
        with pytest.raises(ValueError, match="gives its terms no divisor"):
            DivisorReducer()({"loss": pairs()}, X, None)


def test_do_nothing_returns_the_terms() -> None:
    loss = ContrastiveLoss(reducer=DoNothingReducer())
    terms = loss(torch.randn(6, 2), torch.arange(6) % 2)
    assert list(terms) == ["pos_loss", "neg_loss"]
    assert all(isinstance(term, Term) for term in terms.values())


@pytest.mark.parametrize("make", [ThresholdReducer, lambda: ThresholdReducer(low=float("nan"))])
def test_a_threshold_needs_a_limit(make: Callable[[], Reducer]) -> None:
    with pytest.raises(ParameterError, match="ThresholdReducer"):
        make()


@pytest.mark.parametrize("high", [0.0, 1.0])
def test_thresholds_with_nothing_between_are_refused(high: float) -> None:
    with pytest.raises(ParameterError, match=f"ThresholdReducer: low must be below high, got 1 and {high:g}"):
        ThresholdReducer(low=1, high=high)
    reducer = ThresholdReducer(low=1, high=2)
    reducer.high = high  # low may follow; what counts is what they are when used
    with pytest.raises(ParameterError, match="low must be below high"):
        reducer({"loss": {"losses": torch.ones(3), "indices": torch.arange(3)}}, torch.zeros(3, 2))
