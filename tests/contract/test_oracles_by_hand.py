"""The oracles against numbers worked out by hand, where pytorch-metric-learning means something else."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tests.contract.inputs import rows
from tests.oracles import oracle
from tests.oracles.pair import cosine_embedding_of_rows
from tests.oracles.triplet import triplet_of_rows


def at(*degrees: float) -> Tensor:
    """Unit rows in the plane at these angles."""
    angles = torch.tensor(degrees, dtype=torch.float64) * math.pi / 180
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def cosine_of(degrees: float) -> float:
    return math.cos(math.radians(degrees))


LABELS = torch.tensor([0, 0, 1])
POINTS = at(0, 60, 90)  # cosines: positive pair 1/2; negatives 0 (first) and cos 30 (second)


def test_squared_contrastive_is_the_mean_of_half_squared_hinges() -> None:
    near = 2 * math.sin(math.radians(30))  # distance 1 of the positive pair
    far = [2 * math.sin(math.radians(45)), 2 * math.sin(math.radians(15))]  # sqrt(2) and 0.5176
    active = [(1 - d) ** 2 / 2 for d in far if d < 1]
    want = near**2 / 2 + sum(active) / len(active)
    got = oracle("ContrastiveLoss").value(POINTS, LABELS, options={"squared": True})
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_decoupled_leaves_the_positive_out_of_the_sum() -> None:
    # one negative each, so the logarithm of the sum is that negative's logit
    first, second = (0.0 - 0.5) / 0.1, (cosine_of(30) - 0.5) / 0.1
    got = oracle("DecoupledContrastiveLoss").value(POINTS, LABELS)
    assert float(got) == pytest.approx((first + second) / 2, rel=1e-12)


def test_decoupled_sums_the_exponentials_of_several_negatives() -> None:
    got = oracle("DecoupledContrastiveLoss").value(
        at(0, 60, 90, 180), torch.tensor([0, 0, 1, 2]), options={"temperature": 0.5}
    )
    first = math.log(math.exp(0 / 0.5) + math.exp(-1 / 0.5)) - 0.5 / 0.5
    second = math.log(math.exp(cosine_of(30) / 0.5) + math.exp(cosine_of(120) / 0.5)) - 0.5 / 0.5
    assert float(got) == pytest.approx((first + second) / 2, rel=1e-12)


def test_decoupled_weights_have_mean_one_and_are_smaller_for_easier_pairs() -> None:
    # positives at cosine 1/2 (twice) and 1 (twice); the negatives' parts are equal with and without weights
    points, labels = at(0, 60, 180, 180), torch.tensor([0, 0, 1, 1])
    sigma, tau = 0.5, 0.1
    plain = oracle("DecoupledContrastiveLoss").value(points, labels)
    weighted = oracle("DecoupledContrastiveLoss").value(points, labels, options={"sigma": sigma})
    mean = (2 * math.exp(0.5 / sigma) + 2 * math.exp(1 / sigma)) / 4
    hard, easy = 2 - math.exp(0.5 / sigma) / mean, 2 - math.exp(1 / sigma) / mean
    assert hard > 1 > easy
    assert hard + easy == pytest.approx(2)
    # the anchor's value is lowered by (w - 1) s / tau; four pairs
    change = (2 * (hard - 1) * 0.5 + 2 * (easy - 1) * 1.0) / tau / 4
    assert float(plain - weighted) == pytest.approx(change, rel=1e-9)


def test_decoupled_weights_stay_finite_at_a_tiny_sigma() -> None:
    options = {"sigma": 5e-4}
    got = oracle("DecoupledContrastiveLoss").value(
        at(0, 60, 180, 180), torch.tensor([0, 0, 1, 1]), options=options
    )
    assert math.isfinite(float(got))


def test_decoupled_pairs_without_negatives_stay_in_the_expectation_only() -> None:
    # anchor 0 has the positive 1 (cosine 1/2) and a negative; anchor 2 the positive 3 (cosine 1) alone
    listed = tuple(torch.tensor(part) for part in ([0, 2], [1, 3], [0], [2]))
    got = oracle("DecoupledContrastiveLoss").value(at(0, 60, 90, 90), None, listed, options={"sigma": 0.5})
    mean = (math.exp(0.5 / 0.5) + math.exp(1 / 0.5)) / 2
    want = -(2 - math.exp(0.5 / 0.5) / mean) * 0.5 / 0.1 + 0 / 0.1
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_a_pair_without_negatives_is_a_term_of_zero_that_counts_in_ntxent() -> None:
    listed = tuple(torch.tensor(part) for part in ([0, 2], [1, 3], [0], [2]))
    got = oracle("NTXentLoss").value(at(0, 60, 90, 180), None, listed, options={"temperature": 1.0})
    assert float(got) == pytest.approx(math.log(1 + math.exp(0 - 0.5)) / 2, rel=1e-12)


def test_supcon_keeps_an_anchor_that_has_positives_and_no_negatives() -> None:
    # one class of three at 0, 60 and 90 degrees, temperature 1
    def row(*others: float) -> float:
        s = [cosine_of(angle) for angle in others]
        return math.log(sum(math.exp(v) for v in s)) - sum(s) / len(s)

    want = (row(60, 90) + row(60, 30) + row(90, 30)) / 3
    got = oracle("SupConLoss").value(POINTS, torch.zeros(3, dtype=torch.int64), options={"temperature": 1.0})
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_multi_similarity_averages_over_anchors_that_have_a_pair() -> None:
    listed = tuple(
        torch.tensor(part) for part in ([0], [1], [0, 0], [2, 2])
    )  # one anchor of three, a pair twice
    got = oracle("MultiSimilarityLoss").value(POINTS, None, listed)
    want = math.log(1 + math.exp(-2 * (0.5 - 0.5))) / 2 + math.log(1 + math.exp(50 * (0 - 0.5))) / 50
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_threshold_consistent_margin_counts_pairs_exactly_at_the_threshold() -> None:
    # identical positives at cosine 1 = margin_plus; negatives at 0 = margin_minus and at cos 45
    points, labels = at(0, 0, 90, 45), torch.tensor([0, 0, 1, 1])
    options = {"margin_plus": 1.0, "margin_minus": 0.0}
    near = 1 - cosine_of(45)  # the second class; the first class's pairs count with 0
    want = (2 * 0 + 2 * near) / 4 + (2 * cosine_of(45)) / 4
    got = oracle("ThresholdConsistentMarginLoss").value(points, labels, options=options)
    assert float(got) == pytest.approx(want, rel=1e-9)


def test_threshold_consistent_margin_takes_positives_and_negatives_from_the_reference() -> None:
    got = oracle("ThresholdConsistentMarginLoss").value(
        at(0), torch.tensor([0]), None, at(60, 30, 90), torch.tensor([0, 1, 1])
    )
    assert float(got) == pytest.approx((0.9 - 0.5) + (cosine_of(30) - 0.5), rel=1e-12)


def test_cosine_embedding_by_labels_averages_over_all_pairs_jointly() -> None:
    want = (2 * (1 - 0.5) + 2 * 0 + 2 * cosine_of(30)) / 6
    got = oracle("CosineEmbeddingLoss").value(POINTS, LABELS)
    assert float(got) == pytest.approx(want, rel=1e-9)


def test_cosine_embedding_of_rows_is_the_one_in_torch() -> None:
    x1, x2, target = rows(6, 1), rows(6, 2), torch.tensor([1, -1, 1, -1, -1, 1])
    torch.testing.assert_close(
        cosine_embedding_of_rows(x1, x2, target, 0.2), F.cosine_embedding_loss(x1, x2, target, margin=0.2)
    )


def test_triplet_of_rows_is_the_document_s_code() -> None:
    a, p, n = rows(6, 1), rows(6, 2), rows(6, 3)
    near, far = 1 - F.cosine_similarity(a, p), 1 - F.cosine_similarity(a, n)
    torch.testing.assert_close(triplet_of_rows(a, p, n), torch.relu(near - far + 0.35).mean())
    torch.testing.assert_close(
        triplet_of_rows(a, p, n, 1.0, ("LpDistance", {"normalize_embeddings": False})),
        F.triplet_margin_loss(a, p, n, margin=1.0, eps=0.0),
    )


def test_triplet_by_labels_averages_over_every_triplet() -> None:
    # anchor 0: s_an 0, s_ap 1/2; anchor 1: s_an cos 30, s_ap 1/2; anchor 2 has no positive
    want = (max(0.0, 0 - 0.5 + 0.35) + (cosine_of(30) - 0.5 + 0.35)) / 2
    assert float(oracle("TripletLoss").value(POINTS, LABELS)) == pytest.approx(want, rel=1e-12)


def test_swap_looks_up_the_negative_s_distance_to_the_positive_inside_the_reference() -> None:
    # anchor at 0, positive at 60, negative at 90: the positive is nearer to the negative
    got = oracle("TripletMarginLoss").value(
        at(0), torch.tensor([0]), None, at(60, 90), torch.tensor([0, 1]), options={"swap": True}
    )
    want = 2 * math.sin(math.radians(30)) - 2 * math.sin(math.radians(15)) + 0.2
    assert float(got) == pytest.approx(want, rel=1e-12)


def test_margin_regulariser_stays_without_classes_and_vanishes_with_them_when_nothing_is_violated() -> None:
    points, labels = at(0, 0, 180, 180), torch.tensor([0, 0, 1, 1])
    learned = {"nu": 0.1, "learn_beta": True}
    assert float(oracle("MarginLoss").value(points, labels, options=learned)) == pytest.approx(0.12)
    assert float(oracle("MarginLoss").value(points, labels, options={**learned, "num_classes": 2})) == 0.0


def test_margin_counts_a_pair_once_per_triplet_that_holds_it() -> None:
    # anchor 0: positive at distance 1, negatives at sqrt(2) and 2; beta 1, margin 0.5
    listed = tuple(torch.tensor(part) for part in ([0, 0], [1, 1], [2, 3]))
    got = oracle("MarginLoss").value(at(0, 60, 90, 180), None, listed, options={"beta": 1.0, "margin": 0.5})
    # positive hinge 0.5 twice, negative hinges 1 + 0.5 - sqrt(2) and 0: three non-zero terms
    assert float(got) == pytest.approx((2 * 0.5 + (1.5 - math.sqrt(2))) / 3, rel=1e-12)


def test_labels_compare_beyond_the_precision_of_floats() -> None:
    big = 2**53
    labels = torch.tensor([big, big + 1, big + 1])
    got = oracle("NTXentLoss").value(POINTS, labels, options={"temperature": 1.0})
    want = [math.log(1 + math.exp(s - cosine_of(30))) for s in (0.5, 0.0)]
    assert float(got) == pytest.approx(sum(want) / 2, rel=1e-12)
