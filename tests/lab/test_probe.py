"""The probe: pairs of the histograms, their axis, and quality as the loss measures it."""

import math

import numpy as np
import pytest
import torch

import datasets
from lab.metrics import as_measured, clustering, collapse, quality
from lab.probe import MAX_PAIRS, Probe, rounded_up
from lab.probe_pairs import sample_pairs
from losslib import distances
from losslib.losses import ContrastiveLoss, NTXentLoss

LABELS = np.array([3] * 5 + [1] * 40 + [8] * 1 + [0] * 20)


@pytest.mark.parametrize("positive", [True, False])
def test_pairs_are_of_their_kind_and_never_twice(positive: bool) -> None:
    anchors, others = sample_pairs(LABELS, positive, 500, np.random.default_rng(0))
    assert len(anchors) > 200
    assert (anchors != others).all()
    assert ((LABELS[anchors] == LABELS[others]) == positive).all()
    codes = {frozenset(pair) for pair in zip(anchors.tolist(), others.tolist(), strict=True)}
    assert len(codes) == len(anchors)


def test_pairs_are_uniform_over_all_pairs_not_over_classes() -> None:
    labels = np.array([0] * 300 + [1] * 100)
    anchors, _ = sample_pairs(labels, True, 4000, np.random.default_rng(0))
    of_large = (labels[anchors] == 0).mean()
    assert of_large == pytest.approx(300 * 299 / (300 * 299 + 100 * 99), abs=0.02)


def test_a_side_without_pairs_is_empty() -> None:
    assert len(sample_pairs(np.arange(10), True, 50, np.random.default_rng(0))[0]) == 0
    assert len(sample_pairs(np.zeros(10, np.int64), False, 50, np.random.default_rng(0))[0]) == 0


def test_histograms_count_every_sampled_pair_on_the_losss_own_axis() -> None:
    data = datasets.load("blobs", 0, points=400, classes=4)
    embeddings = torch.randn(200, 3, generator=torch.Generator().manual_seed(1))
    for loss, low, high in ((ContrastiveLoss(), 0, 2), (NTXentLoss(), -1, 1)):
        probe = Probe(data, True, 0, 3)
        snapshot = probe.look(embeddings, loss, with_map=False)
        assert snapshot is not None
        histogram = snapshot.histogram
        assert (histogram.low, histogram.high) == (low, high)
        assert sum(len(anchors) for anchors, _ in probe.pairs) <= MAX_PAIRS
        for side, (anchors, others) in zip(
            (histogram.positive, histogram.negative), probe.pairs, strict=True
        ):
            unit = torch.nn.functional.normalize(embeddings.double(), dim=1)
            cosine = (unit[anchors] * unit[others]).sum(dim=1)
            values = cosine if low == -1 else (2 - 2 * cosine).sqrt()
            expected, _ = np.histogram(values.numpy(), bins=len(side), range=(low, high))
            assert side.sum() == len(anchors)
            assert np.abs(side - expected).sum() <= 4  # rounding at the edges of bins


def test_an_unbounded_axis_grows_in_steps_and_never_shrinks() -> None:
    data = datasets.load("blobs", 0, points=400, classes=4)
    probe = Probe(data, True, 0, 2)
    loss = ContrastiveLoss(distance=distances.LpDistance(normalize_embeddings=False))
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(1))
    ends = []
    for scale in (0.1, 1.0, 30.0, 0.1):
        snapshot = probe.look(scale * x, loss, with_map=False)
        assert snapshot is not None
        ends.append(snapshot.histogram.high)
        assert snapshot.histogram.low == 0
    assert ends == sorted(ends)
    assert ends[-1] == ends[-2]
    assert all(f"{end:.0e}"[0] in "125" for end in ends)
    assert ends[2] > 50
    assert [rounded_up(v) for v in (0.0, 0.011, 0.2, 3.0, 5.0, 501.0)] == [0.0, 0.02, 0.2, 5.0, 5.0, 1000.0]


def test_what_is_not_finite_has_no_snapshot() -> None:
    probe = Probe(datasets.load("blobs", 0, points=400, classes=4), True, 0, 2)
    broken = torch.ones(200, 2)
    broken[7, 1] = math.inf
    assert probe.look(broken, ContrastiveLoss(), with_map=False) is None


def test_quality_is_measured_on_the_lengths_the_loss_sees() -> None:
    x = torch.tensor([[1.0, 0.0], [9.0, 0.5], [0.0, 1.0], [0.5, 9.0]])
    y = torch.tensor([0, 0, 1, 1])
    assert quality(as_measured(x, ContrastiveLoss()), y, True)["recall_at_1"] == 1.0
    plain = ContrastiveLoss(distance=distances.LpDistance(normalize_embeddings=False))
    assert quality(as_measured(x, plain), y, False)["recall_at_1"] == 0.5
    assert quality(x, y, False)["map_at_r"] is None


def test_collapse_of_one_point() -> None:
    assert collapse(torch.ones(5, 3)) == pytest.approx(
        {"spread": 0.0, "effective_rank": 1.0, "mean_cosine": 1.0}
    )


def test_clustering_finds_separated_classes_and_not_mixed_ones() -> None:
    y = torch.arange(3).repeat_interleave(30)
    x = torch.nn.functional.one_hot(y).double() + 0.01 * torch.randn(90, 3, dtype=torch.float64)
    assert clustering(x, y)["nmi"] == pytest.approx(1.0)
    mixed = clustering(x, y[torch.randperm(90, generator=torch.Generator().manual_seed(0))])
    assert abs(mixed["ami"]) < 0.15
