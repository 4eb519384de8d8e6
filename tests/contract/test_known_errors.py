"""Wrong inputs and lost state of the kinds that comparable software let pass."""

import math
from typing import Any

import pytest
import torch

from losslib import distances, losses, reducers
from tests.contract.inputs import rows
from tests.contract.registered import build
from tests.contract.test_known_failures import PAIRED, backward
from tests.oracles import oracle


class TestErrors:
    NAMES = ("ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "SupConLoss", "MultiSimilarityLoss")

    @pytest.mark.parametrize("name", NAMES)
    def test_labels_of_another_shape(self, name: str) -> None:
        x, labels = rows(6, 90), torch.tensor([0, 0, 1, 1, 2, 2])
        wrong = (
            labels[:, None],
            torch.nn.functional.one_hot(labels),
            labels[:5],
            torch.cat([labels, labels]),
        )
        for given in wrong:
            with pytest.raises(ValueError, match=rf"{name}.*labels.*\(6,\).*{given.shape[0]}"):
                getattr(losses, name)()(x, given)

    @pytest.mark.parametrize("labels", [[1, 2, 3, 3], [0, 0, -1, -1]])
    def test_labels_that_are_no_class_of_a_beta_per_class(self, labels: list[int]) -> None:
        loss = losses.MarginLoss(learn_beta=True, num_classes=3)
        with pytest.raises(ValueError, match=r"MarginLoss.*labels.*0\.\.2"):
            loss(rows(4, 91).float(), torch.tensor(labels))

    def test_the_reference_may_have_classes_that_beta_has_not(self) -> None:
        loss = build("MarginLoss", {"num_classes": 2})
        labels, other = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 7, -3])
        value = loss(rows(3, 92), labels, ref_emb=rows(4, 93), ref_labels=other)
        expected = oracle("MarginLoss").value(
            rows(3, 92), labels, None, rows(4, 93), other, options={"num_classes": 2}
        )
        assert float(value) == pytest.approx(float(expected), rel=1e-9)

    def test_a_distance_where_a_similarity_is_meant(self) -> None:
        with pytest.raises(TypeError, match=r"ThresholdConsistentMarginLoss.*similarity"):
            losses.ThresholdConsistentMarginLoss(distance=distances.LpDistance())

    def test_a_reducer_where_the_loss_reduces_itself(self) -> None:
        with pytest.raises(TypeError, match=r"ThresholdConsistentMarginLoss.*reducer"):
            losses.ThresholdConsistentMarginLoss(reducer=reducers.MeanReducer())

    def test_a_reducer_that_would_drop_the_divisor(self) -> None:
        loss = losses.MarginLoss(reducer=reducers.MeanReducer())
        with pytest.raises(ValueError, match="DivisorReducer"):
            loss(rows(4, 94).float(), PAIRED)


class TestState:
    def test_beta_learns_and_keeps_its_dtype_whatever_comes_in(self) -> None:
        loss = losses.MarginLoss(learn_beta=True, num_classes=3)
        (beta,) = loss.parameters()
        assert beta.shape == (3,)
        x, labels = rows(6, 95).float(), torch.tensor([0, 1, 2, 0, 1, 2])
        backward(loss, x, labels)
        assert beta.grad is not None
        assert bool(beta.grad.any())
        for other in (x.double(), x.half(), x.bfloat16()):
            try:
                loss(other, labels)
            except ValueError as error:
                assert "MarginLoss" in str(error)  # noqa: PT017 - refusing is allowed, recasting is not
            assert beta.dtype == torch.float32

    @pytest.mark.parametrize(
        ("name", "options"),
        [("TripletMarginLoss", {}), ("MarginLoss", {}), ("MarginLoss", {"num_classes": 3})],
    )
    @pytest.mark.parametrize("count", [1, 3])
    def test_sampled_triplets_follow_torch_s_seed_and_are_valid(
        self, name: str, options: dict[str, Any], count: int
    ) -> None:
        loss = getattr(losses, name)(triplets_per_anchor=count, **options).double()
        x, labels = rows(9, 96), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 1])
        drawn = []
        for seed in (5, 5, 6):
            torch.manual_seed(seed)
            a, p, n = loss.loss_terms(x, labels)["loss"].indices
            assert torch.equal(torch.bincount(a, minlength=9), torch.full((9,), count))
            assert bool((labels[a] == labels[p]).all() and (a != p).all() and (labels[a] != labels[n]).all())
            drawn.append(torch.stack([a, p, n]).tolist())
        assert drawn[0] == drawn[1]
        assert drawn[0] != drawn[2]

    def test_sampled_triplets_are_uniform_over_the_pairs_of_an_anchor(self) -> None:
        loss = losses.TripletMarginLoss(triplets_per_anchor=6000)
        torch.manual_seed(0)
        labels = torch.tensor([0, 0, 0, 1, 1])
        a, p, n = loss.loss_terms(rows(5, 97).float(), labels)["loss"].indices
        own = a == 0
        counts = torch.bincount((p[own] - 1) * 2 + (n[own] - 3), minlength=4)
        assert int(counts.sum()) == 6000
        assert float((counts - 1500).abs().max()) < 5 * math.sqrt(1500)  # 5 standard deviations

    def test_anchors_without_triplets_draw_none(self) -> None:
        loss = losses.TripletMarginLoss(triplets_per_anchor=4)
        a, _, _ = loss.loss_terms(rows(4, 98).float(), torch.tensor([0, 0, 1, 2]))["loss"].indices
        assert torch.bincount(a, minlength=4).tolist() == [4, 4, 0, 0]
