"""A moment of a recording: its step, its embeddings, and the sentences about it."""

import numpy as np
import pytest
import torch

from lab.frame import Histogram
from lab.moment import moment, stand
from lab.moment_words import chosen_words, curves_words, distances_words, kept_words, map_words
from lab.neighbours import Neighbourhoods
from lab.projections import project
from losslib.types import Mark

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def recording(small, finished):
    return finished(small(dim=4, output="none")).recording


def test_a_moment_is_the_frame_in_view_or_the_newest(recording) -> None:
    assert moment(recording).frame is recording.latest
    assert moment(recording, 5).frame.step == 5
    assert moment(recording, 11).frame.step == 10
    now = moment(recording, 5)
    assert np.array_equal(now.embeddings, recording.at(5).embeddings.astype(np.float32))
    # the contrastive loss measures embeddings at length 1
    assert np.linalg.norm(now.measured, axis=1) == pytest.approx(1)
    assert now.without_embeddings == ""


def test_a_map_in_space_lies_over_the_flat_one(recording) -> None:
    now = moment(recording)
    space = now.in_space()
    centred = now.frame.positions - now.frame.positions.mean(axis=0)
    assert np.allclose(space[:, :2] - space[:, :2].mean(axis=0), centred, atol=0.02 * centred.std())
    wide = now.embeddings.astype(float)
    variances = np.linalg.eigvalsh(np.cov(wide.T, bias=True))
    assert space.var(axis=0).sum() == pytest.approx(variances[-3:].sum(), rel=1e-3)


def test_two_coordinates_are_their_own_embeddings(small, finished) -> None:
    two = finished(small(dim=2, steps=2)).recording
    now = moment(two)
    assert np.array_equal(now.embeddings, two.latest.positions)
    assert now.in_space() is None


def test_a_moment_without_embeddings_names_the_nearest_that_has_them(recording) -> None:
    from copy import copy
    from dataclasses import replace

    thin = copy(recording)
    thin.frames = [replace(f, embeddings=None) if f.step > 3 else f for f in recording.frames]
    now = moment(thin, 7)
    assert (now.embeddings, now.measured, now.standing, now.in_space()) == (None, None, None, None)
    assert "embeddings of step 7" in now.without_embeddings
    assert now.without_embeddings.endswith("the nearest step that has them is 3.")
    thin.frames = []
    assert moment(thin) is None


def test_projection_on_three_axes_keeps_the_most_variance_and_follows_the_previous_one() -> None:
    x = torch.randn(500, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [5, 0.1, 3, 0.2, 2, 0.3]
    )
    first = project(x, size=3)
    assert torch.allclose(first.std(dim=0), torch.tensor([5.0, 3.0, 2.0]), rtol=0.1)
    flip = torch.diag(torch.tensor([-1.0, 1, 1, 1, -1, 1]))
    assert torch.allclose(project(x @ flip, first, size=3), first, atol=1e-3)
    assert torch.equal(project(x[:, :2], size=3), torch.nn.functional.pad(x[:, :2], (0, 1)))


def test_standing_is_the_distance_to_class_means() -> None:
    points, classes = RNG.normal(size=(40, 3)), RNG.integers(0, 3, 40) * 2
    found = stand(points, classes)
    means = {c: points[classes == c].mean(axis=0) for c in (0, 2, 4)}
    for i, c in enumerate(classes):
        others = {d: np.linalg.norm(points[i] - means[d]) for d in means if d != c}
        nearest = min(others, key=others.get)
        assert found.to_own[i] == pytest.approx(np.linalg.norm(points[i] - means[c]))
        assert (found.other[i], found.to_other[i]) == (nearest, pytest.approx(others[nearest]))
    alone = stand(points, np.zeros(40, dtype=int))
    assert set(alone.other) == {-1}
    assert not alone.astray.any()


def test_words_of_a_map() -> None:
    points = np.array([[0.0, 0], [0, 2], [10, 0], [10, 0], [0, 1]])
    classes = np.array([0, 0, 1, 1, 1])
    said = map_words(classes, ("a", "b"), stand(points, classes))
    assert said.startswith("5 points of 2 classes. The tightest class is a (mean distance to its own mean 1)")
    assert "20.0 % of the points are nearer to another class's mean than to their own." in said
    assert map_words(classes[:2], ("a", "b"), None) == "2 points of 1 class."
    assert (
        chosen_words(np.array([0, 2, 3]), classes, ("a", "b"))
        == "3 points chosen: 2 of class b, 1 of class a."
    )


def test_words_of_kept_neighbours() -> None:
    points = RNG.normal(size=(50, 4))
    both = Neighbourhoods(points, points)
    said = kept_words(both, 7, "the map (PCA)")
    assert "the map (PCA) keeps 100.0 % among the 7 nearest" in said
    assert "thrown at random keeps 14.3 %" in said
    assert "Trustworthiness 1.000" in said


def test_words_of_distances_are_those_of_the_pairs_in_the_bins() -> None:
    histogram = Histogram(0.0, 4.0, np.array([2, 2, 0, 0]), np.array([0, 1, 0, 3]))
    said = distances_words(histogram, (Mark("line", "negative", 1.5, "m", "negative margin"),), False)
    assert "Positive pairs have a median of 1, negative pairs have a median of 3.33" in said
    # pairs: 2 in the first bin beat all 4, 2 in the second tie with 1 and beat 3
    assert f"in {100 * (2 * 4 + 2 * 3.5) / 16:.1f} % of cases" in said
    assert said.endswith("Drawn: negative margin 1.5.")
    assert "in 6.2 % of cases" in distances_words(histogram, (), True)
    # of 4 x 4 pairs of pairs 4 are told apart (2 of each order), 4 + 4 lie in one bin
    shared = Histogram(0.0, 2.0, np.array([2, 2]), np.array([2, 2]))
    assert "in 25 % to 75 % of cases" in distances_words(shared, (), False)
    collapsed = Histogram(0.0, 2.0, np.array([0, 9]), np.array([0, 9]))
    assert "share a bin, which cannot tell which are closer" in distances_words(collapsed, (), False)
    assert (
        distances_words(Histogram(0, 1, np.zeros(3), np.zeros(3)), (), False)
        == "There are no pairs to measure."
    )


def test_words_of_curves_end_at_the_moment() -> None:
    steps = np.arange(5.0)
    values = {"step": steps, "loss": 4 - steps, "recall_at_1": steps / 4, "map_at_r": np.full(5, np.nan)}
    said = curves_words(values, 3, 0.25)
    assert said == (
        "The loss of the batch went from 4 to 1 at step 3. "
        "recall@1 went from 0.0 % to 75.0 % (chance is 25 %)."
    )
    seldom = values | {"map_at_r": np.array([0.1, np.nan, 0.2, np.nan, 0.3])}
    assert curves_words(seldom, 3, 0.25).endswith("MAP@R went from 10.0 % to 20.0 % at step 2.")
    assert curves_words(seldom, 4, 0.25).endswith("MAP@R went from 10.0 % to 30.0 %.")
