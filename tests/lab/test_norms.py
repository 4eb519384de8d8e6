"""The norm lesson against scikit-learn, scipy, torch and identities that hold by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from lab.encoders import output_layer
from lab.norm_words import distance_sentences, norm_sentences
from lab.norms import (
    OUTPUTS,
    auc,
    best_threshold,
    comparison,
    mean_ranks,
    norm_lesson,
    normalised,
    separation,
    spearman,
)
from losslib.errors import ParameterError, ShapeError

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 4, 300)
DIRECTIONS = RNG.normal(size=(4, 6))
CLOUD = DIRECTIONS[LABELS] + 0.7 * RNG.normal(size=(300, 6))
LENGTHS = CLOUD * RNG.uniform(0.2, 5.0, size=(300, 1))


def test_auc_is_scikit_learns_with_ties() -> None:
    positive, negative = RNG.integers(3, 9, 200).astype(float), RNG.integers(0, 7, 150).astype(float)
    truth = np.r_[np.ones(200), np.zeros(150)]
    assert auc(positive, negative) == pytest.approx(roc_auc_score(truth, np.r_[positive, negative]))
    assert auc(np.ones(3), np.zeros(2)) == 1
    assert auc(np.ones(3), np.ones(2)) == 0.5
    assert math.isnan(auc(np.ones(3), np.zeros(0)))


def test_best_threshold_is_the_best_of_all() -> None:
    positive, negative = RNG.normal(1.0, 1, 60), RNG.normal(0, 1, 90)
    found = best_threshold(positive, negative)
    share = lambda t: ((positive >= t).mean() + (negative < t).mean()) / 2  # noqa: E731
    assert found.right == pytest.approx(max(share(t) for t in np.r_[positive, negative]))
    assert share(found.value) == pytest.approx(found.right)
    assert best_threshold(np.array([3.0, 4.0]), np.array([1.0, 2.0])) == (2.5, 1.0)


def test_spearman_is_scipys_with_ties() -> None:
    first, second = RNG.integers(0, 9, 120).astype(float), RNG.integers(0, 9, 120) + 0.5
    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)
    assert spearman(first, first**3) == pytest.approx(1)
    assert math.isnan(spearman(first, np.ones(120)))
    assert mean_ranks(np.array([5.0, 1.0, 5.0])).tolist() == [2.5, 1.0, 2.5]


@pytest.mark.parametrize("output", OUTPUTS)
def test_normalised_is_what_the_encoders_output_layer_does(output: str) -> None:
    layer = output_layer(output, 6).double().train()
    assert np.allclose(normalised(LENGTHS, output), layer(torch.from_numpy(LENGTHS)).numpy(), atol=1e-9)


def test_equal_norms_make_both_distances_one() -> None:
    for output, radius in (("l2", 1.0), ("layernorm", math.sqrt(6))):
        lesson = norm_lesson(normalised(LENGTHS, output), LABELS)
        assert lesson.norms == pytest.approx(radius, rel=1e-3)
        assert lesson.identity_gap < 1e-3
        assert lesson.rank_agreement == pytest.approx(1, abs=1e-4)
        assert lesson.euclidean.auc == pytest.approx(lesson.cosine.auc, abs=1e-3)
        assert lesson.length_share < 1e-4
        distance, similarity = lesson.example
        assert distance**2 == pytest.approx(2 * radius**2 * (1 - similarity), rel=1e-2)


def test_the_root_mean_square_norm_after_batchnorm_is_the_root_of_the_size() -> None:
    norms = norm_lesson(normalised(LENGTHS, "batchnorm"), LABELS).norms
    assert math.sqrt((norms**2).mean()) == pytest.approx(math.sqrt(6), rel=1e-4)
    assert norms.std() > 0.5


def test_without_normalisation_length_takes_a_share_and_cosine_separates_better() -> None:
    lesson = norm_lesson(LENGTHS, LABELS)
    assert not lesson.equal_norms
    assert lesson.cosine.auc > lesson.euclidean.auc + 0.05
    assert lesson.rank_agreement < 0.9
    # two embeddings of one direction: all of the distance is length
    line = norm_lesson(np.array([[1.0, 0], [3.0, 0], [4.0, 0]]), np.array([0, 0, 1]))
    assert line.length_share == pytest.approx(1)
    assert norm_lesson(np.eye(3), np.array([0, 0, 1])).length_share == 0


def test_every_pair_is_measured_where_there_are_few() -> None:
    points, labels = CLOUD[:40], LABELS[:40]
    lesson = norm_lesson(points, labels)
    i, j = np.triu_indices(40, 1)
    truth = labels[i] == labels[j]
    distances = np.linalg.norm(points[i] - points[j], axis=1)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    similarities = (unit[i] * unit[j]).sum(axis=1)
    assert lesson.euclidean.histogram.positive.sum() == truth.sum()
    assert lesson.euclidean.histogram.negative.sum() == (~truth).sum()
    assert lesson.euclidean.auc == pytest.approx(roc_auc_score(truth, -distances))
    assert lesson.cosine.auc == pytest.approx(roc_auc_score(truth, similarities))
    assert lesson.rank_agreement == pytest.approx(spearmanr(-distances, similarities).statistic)
    shares = (np.linalg.norm(points[i], axis=1) - np.linalg.norm(points[j], axis=1)) ** 2
    assert lesson.length_share == pytest.approx(shares.sum() / (distances**2).sum())


def test_threshold_of_a_distance_is_on_its_own_axis() -> None:
    positive = np.array([True, True, False, False])
    found = separation("Euclidean distance", False, np.array([0.1, 0.3, 0.7, 2.0]), positive)
    assert found.threshold == (pytest.approx(0.5), 1.0)
    assert found.auc == 1
    assert (found.histogram.low, found.histogram.high) == (0.0, 2.0)


def test_the_sentences_hold_the_numbers() -> None:
    unit = norm_lesson(np.array([[1.0, 0], [0, 1.0], [1.0, 0]]), np.array([0, 0, 1]))
    assert "mean 1, standard deviation 0" in norm_sentences(unit, "l2")[0]
    said = " ".join(distance_sentences(unit))
    assert (
        "d² = 2 − 2s: the middle pair has s = 0.000, which gives 2.000, and its measured d² is 2.000" in said
    )
    assert "Both rank the pairs alike (Spearman 1.000" in said
    layered = norm_lesson(normalised(LENGTHS, "layernorm"), LABELS)
    assert "every norm is √6 = 2.45" in " ".join(norm_sentences(layered, "layernorm"))
    assert "d² = 2r²(1 − s) with r² = 6" in distance_sentences(layered)[0]
    free = distance_sentences(norm_lesson(LENGTHS, LABELS))
    assert "Lengths differ" in free[0]
    assert "cosine similarity separates better here" in free[2]
    assert "(1, -1) and (-1, 1)" in norm_sentences(norm_lesson(np.eye(2), np.arange(2)), "layernorm")[-1]


def test_comparison_measures_the_same_pairs_after_each_normalisation() -> None:
    rows = {row.output: row for row in comparison(LENGTHS, LABELS)}
    assert list(rows) == ["none", "l2", "layernorm", "batchnorm"]
    assert rows["none"].cosine_auc == norm_lesson(LENGTHS, LABELS).cosine.auc
    assert rows["l2"].cosine_auc == pytest.approx(rows["none"].cosine_auc), "cosine never saw the length"
    assert rows["l2"].euclidean_auc == pytest.approx(rows["none"].cosine_auc)
    assert rows["layernorm"].norm_mean == pytest.approx(math.sqrt(6), rel=1e-3)


def test_degenerate_embeddings_are_sentences_not_errors() -> None:
    same = norm_lesson(np.ones((10, 3)), np.arange(10) % 2)
    assert same.euclidean.auc == 0.5
    assert "equally close" in " ".join(distance_sentences(same))
    zero = norm_lesson(np.zeros((4, 3)), np.array([0, 0, 1, 1]))
    assert zero.zeros == 4
    assert "4 embeddings have length 0" in norm_sentences(zero)[-1]
    one = norm_lesson(np.ones((1, 3)), np.array([0]))
    assert distance_sentences(one) == ["There are no pairs to measure."]
    lone = norm_lesson(np.eye(3), np.arange(3))
    assert "not both positive and negative" in " ".join(distance_sentences(lone))
    with pytest.raises(ParameterError, match="finite"):
        norm_lesson(np.full((3, 2), np.nan), np.arange(3))
    with pytest.raises(ShapeError, match=r"\(3, 2\) and \(4,\)"):
        norm_lesson(np.ones((3, 2)), np.arange(4))
