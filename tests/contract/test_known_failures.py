"""Inputs of the kinds that broke comparable software: values from the oracles or by hand."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import distances, losses, reducers
from tests.contract.inputs import rows
from tests.contract.registered import build
from tests.oracles import oracle
from tests.oracles.geometry import matrix

PAIRED = torch.tensor([0, 0, 1, 1])


def backward(loss: Any, x: Tensor, *arguments: Any, **named: Any) -> tuple[float, Tensor]:
    """Value and gradient."""
    leaf = x.clone().requires_grad_()
    value = loss(leaf, *arguments, **named)
    value.backward()
    assert leaf.grad is not None
    return float(value.detach()), leaf.grad


class TestCoincidentAndZeroRows:
    @pytest.mark.parametrize("normalise", [True, False])
    @pytest.mark.parametrize(
        ("name", "options", "expected"),
        [
            ("TripletMarginLoss", {}, 0.2),
            ("TripletMarginLoss", {"smooth_loss": True}, math.log1p(math.exp(0.2))),
            ("ContrastiveLoss", {}, 1.0),
            ("MarginLoss", {}, 1.4),  # every negative hinge is 1.2 + 0.2, no positive one is open
        ],
    )
    def test_one_point_repeated(
        self, name: str, options: dict[str, Any], expected: float, normalise: bool
    ) -> None:
        distance = distances.LpDistance(normalize_embeddings=normalise)
        x = torch.tensor([[0.6, -0.3, 0.9]] * 4)
        value, gradient = backward(getattr(losses, name)(distance=distance, **options), x, PAIRED)
        assert value == pytest.approx(expected, rel=1e-6)
        assert bool(torch.isfinite(gradient).all())

    @pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "MultiSimilarityLoss"])
    def test_a_zero_row_has_similarity_0_and_no_gradient(self, name: str) -> None:
        x = torch.tensor([[0.0, 0.0, 0.0], [2.0, 1.0, 2.0], [0.0, 3.0, -4.0], [1.0, 0.0, 0.0]])
        value, gradient = backward(getattr(losses, name)(), x, PAIRED)
        assert value == pytest.approx(float(oracle(name).value(x, PAIRED)), rel=1e-5)
        assert gradient[0].tolist() == [0.0, 0.0, 0.0]
        assert float(gradient.abs().max()) < 1e3


class TestPrecision:
    def far_grid(self) -> Tensor:
        """Integer points far from the origin: float32 holds them and their differences exactly."""
        k = torch.arange(40)
        x = torch.stack([500_000 + (k % 8) * 3.0, 640_000 + (k // 8) * 4.0], dim=1)
        x[7] = x[2]
        x[39] = torch.tensor([500_903.0, 640_000.0])
        return x

    def test_distances_far_from_the_origin_lose_no_digits_whatever_the_batch_size(self) -> None:
        x = self.far_grid()
        distance = distances.LpDistance(normalize_embeddings=False)
        whole, part = distance(x), distance(x[:6])
        exact = matrix(("LpDistance", {"normalize_embeddings": False}), x.double(), x.double())
        assert float((whole.double() - exact).abs().max()) < 1e-3
        assert float(whole[2, 7]) == 0.0
        torch.testing.assert_close(whole[:6, :6], part, rtol=1e-6, atol=1e-4)

    def test_a_loss_of_far_points(self) -> None:
        x, labels = self.far_grid(), torch.arange(40) % 2
        spec = ("LpDistance", {"normalize_embeddings": False})
        loss = losses.ContrastiveLoss(
            neg_margin=12.0, distance=distances.LpDistance(normalize_embeddings=False)
        )
        value, gradient = backward(loss, x, labels)
        expected = oracle("ContrastiveLoss").value(x, labels, distance=spec, options={"neg_margin": 12.0})
        assert value == pytest.approx(float(expected), rel=1e-5)
        assert bool(torch.isfinite(gradient).all())

    @pytest.mark.parametrize("apart", [1e-2, 1e-3, 1e-5])
    def test_unit_rows_close_to_each_other_keep_their_distance_in_float64(self, apart: float) -> None:
        x = torch.nn.functional.normalize(rows(60, 71, 16), dim=1)
        x[1] = x[0] + apart * torch.nn.functional.normalize(rows(1, 72, 16), dim=1)
        x = torch.nn.functional.normalize(x, dim=1)
        expected = float((x[0] - x[1]).norm())
        assert float(distances.LpDistance()(x)[0, 1]) == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "DecoupledContrastiveLoss"])
    @pytest.mark.parametrize(
        ("similarity", "scale", "temperature"), [("cosine", 1.0, 0.005), ("dot", 70.0, 0.07)]
    )
    def test_low_temperatures_and_large_products_neither_overflow_nor_saturate(
        self, name: str, similarity: str, scale: float, temperature: float
    ) -> None:
        x = scale * torch.tensor([[1.0, 0.2], [-1.0, 0.3], [0.9, 0.25], [1.0, -0.1]])
        kind = "CosineSimilarity" if similarity == "cosine" else "DotProductSimilarity"
        loss = getattr(losses, name)(temperature=temperature, distance=getattr(distances, kind)())
        value, gradient = backward(loss, x, PAIRED)
        leaf = x.double().requires_grad_()
        expected = oracle(name).value(leaf, PAIRED, distance=kind, options={"temperature": temperature})
        expected.backward()
        assert value == pytest.approx(float(expected.detach()), rel=1e-5)
        assert leaf.grad is not None
        error = (gradient.double() - leaf.grad).abs().max() / leaf.grad.abs().max()
        assert float(error) < 1e-3

    def test_a_smooth_triplet_of_far_points_is_linear_not_infinite(self) -> None:
        x = torch.tensor([[0.0, 0.0], [7000.0, 0.0], [5.0, 0.0], [7000.0, 40.0]])
        loss = losses.TripletMarginLoss(
            smooth_loss=True, distance=distances.LpDistance(normalize_embeddings=False)
        )
        value, gradient = backward(loss, x, PAIRED)
        spec = ("LpDistance", {"normalize_embeddings": False})
        expected = oracle("TripletMarginLoss").value(x, PAIRED, distance=spec, options={"smooth_loss": True})
        assert value == pytest.approx(float(expected), rel=1e-5)
        assert bool(torch.isfinite(gradient).all())

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "MultiSimilarityLoss", "ContrastiveLoss"])
    def test_half_precision_with_a_very_hard_positive(self, name: str, dtype: torch.dtype) -> None:
        x = rows(12, 73, 16)
        x[1] = -x[0] + 0.1 * x[1]
        x = x.to(dtype)
        labels = torch.arange(4).repeat_interleave(3)
        value, gradient = backward(getattr(losses, name)(), x, labels)
        assert value == pytest.approx(float(oracle(name).value(x, labels)), rel=1e-4)
        assert bool(torch.isfinite(gradient).all())

    def test_rows_longer_than_float16_can_square(self) -> None:
        x = (rows(6, 74) * 20_000).half()
        labels = torch.tensor([0, 0, 1, 1, 2, 2])
        value, gradient = backward(losses.NTXentLoss(), x, labels)
        assert value == pytest.approx(float(oracle("NTXentLoss").value(x, labels)), rel=1e-4)
        assert bool(torch.isfinite(gradient).all())


class TestNothingToDo:
    DIFFERENT = torch.tensor([8, 2, 5, 0])

    @pytest.mark.parametrize(
        "name",
        [
            "NTXentLoss",
            "SupConLoss",
            "TripletMarginLoss",
            "TripletLoss",
            "MarginLoss",
            "DecoupledContrastiveLoss",
        ],
    )
    @pytest.mark.parametrize("count", [0, 1, 4])
    def test_without_positives_a_loss_that_needs_them_is_exactly_0(self, name: str, count: int) -> None:
        value, gradient = backward(getattr(losses, name)(), rows(4, 80)[:count], self.DIFFERENT[:count])
        assert value == 0.0
        assert gradient.shape == (count, 4)
        assert not bool(gradient.any())

    @pytest.mark.parametrize(
        "name",
        ["ContrastiveLoss", "MultiSimilarityLoss", "ThresholdConsistentMarginLoss", "CosineEmbeddingLoss"],
    )
    def test_without_positives_the_others_keep_their_negative_part(self, name: str) -> None:
        x = torch.tensor([[1.0, 0.1], [0.9, 0.2], [1.0, -0.1], [0.8, 0.1]])  # all within the margins
        value, _ = backward(getattr(losses, name)(), x, self.DIFFERENT)
        assert value > 0.01
        assert value == pytest.approx(float(oracle(name).value(x, self.DIFFERENT)), rel=1e-5)

    def test_supcon_averages_over_the_anchors_that_have_a_positive(self) -> None:
        x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0]])
        labels = torch.tensor([1.5, 4.0, 4.0, 9.0])  # floating, two of them alone
        value, _ = backward(losses.SupConLoss(temperature=1.0), x, labels)
        # cosines: 1-2: 0.8; 1-0: 0, 1-3: 0; 2-0: 0.6, 2-3: -0.6
        first = math.log(math.exp(0.8) + 2) - 0.8
        second = math.log(math.exp(0.8) + math.exp(0.6) + math.exp(-0.6)) - 0.8
        assert value == pytest.approx((first + second) / 2, rel=1e-6)

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            ({}, 0.0),
            ({"nu": 0.1, "learn_beta": True}, 0.12),
            ({"nu": 0.1, "learn_beta": True, "num_classes": 2}, 0.0),
        ],
    )
    def test_margin_with_no_violated_pair(self, options: dict[str, Any], expected: float) -> None:
        x = torch.tensor([[1.0, 0.0], [1.0, 0.02], [-1.0, 0.0], [-1.0, 0.02]])
        value, gradient = backward(losses.MarginLoss(**options), x, PAIRED)
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert not bool(gradient.any())


class TestCollapse:
    @pytest.mark.parametrize("labels", [[0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 0, 0, 1, 1, 1, 1]])
    def test_supcon_of_one_point_is_the_logarithm_of_the_others(self, labels: list[int]) -> None:
        x = torch.tensor([[0.6, 0.8]] * 8)
        value, _ = backward(losses.SupConLoss(), x, torch.tensor(labels))
        assert value == pytest.approx(math.log(7), rel=1e-6)

    def test_ntxent_of_one_point_counts_the_positive_and_the_negatives(self) -> None:
        x = torch.tensor([[0.6, 0.8]] * 8)
        value, _ = backward(losses.NTXentLoss(), x, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))
        assert value == pytest.approx(math.log(1 + 4), rel=1e-6)  # its two other positives do not count


class TestReferences:
    def test_two_views_under_one_label_tensor_keep_every_positive(self) -> None:
        a, b, labels = rows(5, 81), rows(5, 82), torch.arange(5)
        loss = losses.NTXentLoss(temperature=0.5)
        expected = float(oracle("NTXentLoss").value(a, labels, None, b, labels, options={"temperature": 0.5}))
        for other in (labels, labels.clone()):
            assert float(loss(a, labels, ref_emb=b, ref_labels=other)) == pytest.approx(expected, rel=1e-12)

    def test_the_self_supervised_wrapper_is_symmetric(self) -> None:
        a, b = rows(5, 83), rows(5, 84)
        wrapped = losses.SelfSupervisedLoss(losses.NTXentLoss(temperature=0.5))
        both, labels = torch.cat([a, b]), torch.arange(5).repeat(2)
        expected = float(oracle("NTXentLoss").value(both, labels, options={"temperature": 0.5}))
        assert float(wrapped(a, b)) == pytest.approx(expected, rel=1e-12)
        assert float(wrapped(b, a)) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(
        ("name", "options"),
        [("TripletMarginLoss", {"swap": True}), ("ThresholdConsistentMarginLoss", {}), ("MarginLoss", {})],
    )
    def test_a_reference_of_another_size(self, name: str, options: dict[str, Any]) -> None:
        x, labels = rows(3, 85), torch.tensor([0, 1, 2])
        r, other = rows(7, 86), torch.tensor([2, 0, 1, 1, 0, 5, 2])
        value = build(name, options)(x, labels, ref_emb=r, ref_labels=other)
        expected = oracle(name).value(x, labels, None, r, other, options=options)
        assert float(value) == pytest.approx(float(expected), rel=1e-9)
        assert float(expected) > 0


class TestMeaning:
    def test_the_three_means_of_all_triplets(self) -> None:
        x, labels = rows(7, 87, 3), torch.tensor([0, 0, 0, 1, 1, 2, 2])
        values = {}
        for name in ("AvgNonZeroReducer", "MeanReducer", "SumReducer"):
            loss = losses.TripletMarginLoss(margin=0.3, reducer=getattr(reducers, name)())
            values[name] = float(loss(x, labels))
            expected = oracle("TripletMarginLoss").value(x, labels, reducer=name, options={"margin": 0.3})
            assert values[name] == pytest.approx(float(expected), rel=1e-9)
        assert values["MeanReducer"] < values["AvgNonZeroReducer"] < values["SumReducer"]

    def test_one_step_raises_positive_similarities_and_lowers_open_negative_ones(self) -> None:
        x, labels = rows(6, 88), torch.tensor([0, 0, 1, 1, 2, 2])
        similarity = distances.CosineSimilarity()
        loss = losses.ContrastiveLoss(pos_margin=1.0, neg_margin=0.0, distance=similarity)
        _, gradient = backward(loss, x, labels)
        before, after = similarity(x), similarity(x - 0.2 * gradient)
        same = (labels[:, None] == labels[None, :]) & ~torch.eye(6, dtype=torch.bool)
        other = labels[:, None] != labels[None, :]
        assert float((after - before)[same].sum()) > 0
        assert float((after.relu() - before.relu())[other].sum()) < 0

    def test_distance_margins_on_a_similarity_follow_the_formula_and_warn(self) -> None:
        x, labels = rows(6, 89), torch.tensor([0, 0, 1, 1, 2, 2])
        with pytest.warns(UserWarning, match="pos_margin=1, neg_margin=0"):
            loss = losses.ContrastiveLoss(distance=distances.CosineSimilarity())
        expected = oracle("ContrastiveLoss").value(x, labels, distance="CosineSimilarity")
        assert float(loss(x, labels)) == pytest.approx(float(expected), rel=1e-9)
