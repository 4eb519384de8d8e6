"""SelfSupervisedLoss and MultipleLosses."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog
from losslib.base import PairLoss
from losslib.errors import ParameterError, ShapeError
from losslib.losses import (
    ContrastiveLoss,
    DecoupledContrastiveLoss,
    MultipleLosses,
    MultiSimilarityLoss,
    NTXentLoss,
    SelfSupervisedLoss,
    SupConLoss,
    ThresholdConsistentMarginLoss,
    TripletMarginLoss,
)
from losslib.reducers import DoNothingReducer, SumReducer
from losslib.types import PairIndices

PAIR_LOSSES = [name for name, cls in catalog.losses().items() if issubclass(cls, PairLoss)]
A, B, C = (torch.randn(5, 3, generator=torch.Generator().manual_seed(s)) for s in range(3))
Y = torch.tensor([0, 0, 1, 1, 2])


class TestViews:
    def test_two_views_by_hand(self) -> None:
        def term(anchor: Tensor, own: Tensor, others: list[Tensor]) -> Tensor:
            def logit(u: Tensor, v: Tensor) -> Tensor:
                return torch.cosine_similarity(u, v, dim=0) / 0.5

            total = torch.stack([logit(anchor, o) for o in [own, *others]]).logsumexp(0)
            return total - logit(anchor, own)

        both, values = [*A, *B], []
        for i in range(10):
            own = (i + 5) % 10
            others = [both[j] for j in range(10) if j not in (i, own)]
            values.append(term(both[i], both[own], others))
        expected = torch.stack(values).mean()
        wrapped = SelfSupervisedLoss(NTXentLoss(temperature=0.5))
        torch.testing.assert_close(wrapped(A, B), expected)
        torch.testing.assert_close(wrapped(B, A), expected)
        one_way = torch.stack([term(A[i], B[i], [B[j] for j in range(5) if j != i]) for i in range(5)]).mean()
        asymmetric = SelfSupervisedLoss(NTXentLoss(temperature=0.5), symmetric=False)
        torch.testing.assert_close(asymmetric(A, B), one_way)

    @pytest.mark.parametrize("name", PAIR_LOSSES)
    def test_more_views_and_every_loss(self, name: str) -> None:
        make, labels = catalog.get(name), torch.arange(5)  # anew for each call: a loss may remember batches
        symmetric = SelfSupervisedLoss(make())(A, B, C)
        torch.testing.assert_close(symmetric, make()(torch.cat([A, B, C]), labels.repeat(3)))
        asymmetric = SelfSupervisedLoss(make(), symmetric=False)(A, B, C)
        torch.testing.assert_close(asymmetric, make()(A, labels, None, torch.cat([B, C]), labels.repeat(2)))

    def test_terms(self) -> None:
        terms = SelfSupervisedLoss(SupConLoss()).loss_terms(A, B)
        assert terms["loss"].losses.shape == (10,)

    def test_views_must_match(self) -> None:
        with pytest.raises(
            ShapeError, match=r"view 3 must have shape \(5, 3\), the first view's, got \(4, 3\)"
        ):
            SelfSupervisedLoss(NTXentLoss())(A, B, C[:4])
        with pytest.raises(TypeError, match="loss must be a loss"):
            SelfSupervisedLoss("NTXentLoss")  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="symmetric must be True or False"):
            SelfSupervisedLoss(NTXentLoss(), symmetric=1)  # type: ignore[arg-type]


def pairs_of(first: int) -> PairIndices:
    one = torch.tensor([first])
    return PairIndices(one, one + 1, one, one + 2)


class TestMultipleLosses:
    losses = staticmethod(lambda: {"metric": MultiSimilarityLoss(), "tcm": ThresholdConsistentMarginLoss()})

    def test_a_weighted_sum(self) -> None:
        metric, tcm = MultiSimilarityLoss()(A, Y), ThresholdConsistentMarginLoss()(A, Y)
        torch.testing.assert_close(MultipleLosses(self.losses())(A, Y), metric + tcm)
        weighted = MultipleLosses(self.losses(), weights={"tcm": 0.25})
        torch.testing.assert_close(weighted(A, Y), metric + 0.25 * tcm)
        listed = MultipleLosses(list(self.losses().values()), weights=[2, 0.5])
        torch.testing.assert_close(listed(A, Y), 2 * metric + 0.5 * tcm)

    def test_references_and_tuples_are_passed_on(self) -> None:
        inner = ContrastiveLoss(), TripletMarginLoss()
        both = MultipleLosses(list(inner))
        given = pairs_of(0)
        for arguments in ((A, Y, None, B, Y), (A, None, given), (A, None, given, B)):
            torch.testing.assert_close(both(*arguments), sum(loss(*arguments) for loss in inner))

    def test_nested_and_wrapped(self) -> None:
        outer = MultipleLosses([MultipleLosses(self.losses()), NTXentLoss()], weights=[0.5, 1.0])
        parts = 0.5 * MultipleLosses(self.losses())(A, Y) + NTXentLoss()(A, Y)
        torch.testing.assert_close(outer(A, Y), parts)
        views = SelfSupervisedLoss(MultipleLosses([NTXentLoss(), DecoupledContrastiveLoss()]))
        expected = SelfSupervisedLoss(NTXentLoss())(A, B) + SelfSupervisedLoss(DecoupledContrastiveLoss())(
            A, B
        )
        torch.testing.assert_close(views(A, B), expected)

    def test_miners_choose_for_their_loss(self) -> None:
        calls: list[Any] = []

        def miner(*given: Any) -> PairIndices:
            calls.append(given)
            return pairs_of(1)

        mined = MultipleLosses(self.losses(), miners={"metric": miner})
        expected = MultiSimilarityLoss()(A, Y, pairs_of(1)) + ThresholdConsistentMarginLoss()(A, Y)
        torch.testing.assert_close(mined(A, Y), expected)
        mined(A, Y, None, B, Y)
        assert [len(given) for given in calls] == [2, 4]
        listed = MultipleLosses([SupConLoss(), ContrastiveLoss()], miners=[None, miner])
        torch.testing.assert_close(listed(A, Y), SupConLoss()(A, Y) + ContrastiveLoss()(A, Y, pairs_of(1)))
        with pytest.raises(ValueError, match="give indices_tuple or miners, got both"):
            mined(A, Y, pairs_of(0))

    def test_terms_carry_both_names(self) -> None:
        terms = MultipleLosses({"a": ContrastiveLoss(), "b": NTXentLoss()}).loss_terms(A, Y)
        assert list(terms) == ["a.pos_loss", "a.neg_loss", "b.loss"]

    def test_parameters_of_all_losses_are_its_own(self) -> None:
        both = MultipleLosses([catalog.get("MarginLoss")(learn_beta=True), NTXentLoss()])
        assert [tuple(p.shape) for p in both.parameters()] == [(1,)]
        assert "losses.0.beta" in both.state_dict()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"losses": []}, ParameterError, "at least one loss"),
            ({"losses": ["NTXentLoss"]}, TypeError, r"losses\['0'\] must be a loss"),
            (
                {"losses": [NTXentLoss()], "weights": [1, 2]},
                ParameterError,
                "weights must have 1 entries, got 2",
            ),
            (
                {"losses": {"a": NTXentLoss()}, "weights": {"b": 1}},
                ParameterError,
                r"as the losses are \(a\), got b",
            ),
            (
                {"losses": [NTXentLoss()], "weights": [float("nan")]},
                ParameterError,
                "must be a finite number",
            ),
            ({"losses": [NTXentLoss()], "miners": {"1": print}}, ParameterError, "miners must be named"),
            ({"losses": [NTXentLoss()], "miners": ["hard"]}, TypeError, r"miners\['0'\] must be callable"),
        ],
    )
    def test_bad_arguments(self, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
        with pytest.raises(error, match=f"MultipleLosses: .*{message}"):
            MultipleLosses(**arguments)

    def test_a_loss_must_give_one_number(self) -> None:
        with pytest.raises(ValueError, match=r"losses\['0'\] must give one number"):
            MultipleLosses([NTXentLoss(reducer=DoNothingReducer())])(A, Y)
        assert MultipleLosses([NTXentLoss(reducer=SumReducer())])(A, Y).ndim == 0
