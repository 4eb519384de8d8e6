"""A comparison equals its runs alone, and a loss against itself differs by exactly zero."""

import math

import numpy as np
import pytest

from lab.compare import example, fairness
from lab.compare.duel import MOMENTS, Contender, duel
from lab.compare.line_up import line_up, names
from lab.compare.measures import best, value
from lab.compare.words import distance_words
from lab.config import RunConfig
from lab.frame import identical
from lab.recording import Recording
from losslib.errors import ParameterError

BASE = {"data": "blobs", "blobs.points": "400", "batch": "32", "per_class": "4", "steps": "30"}
WEAK = {"output": "none", "optimizer": "sgd", "lr": "1e20"}


@pytest.fixture(scope="module")
def four() -> tuple[Contender, ...]:
    """A loss twice, another, and one with a rate that ends it."""
    contrastive = {"loss": "ContrastiveLoss"}
    return duel(
        line_up(BASE, [contrastive, contrastive, {"loss": "ProxyAnchorLoss"}, {**contrastive, **WEAK}])
    )


def test_a_loss_against_itself_differs_by_exactly_zero(four):
    first, second = four[0].recording, four[1].recording
    assert first is not second
    assert fairness.largest_difference(first, second) == 0.0
    assert first.equals(second)


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ([math.inf], [1.0], math.inf),
        ([math.inf, 1.0], [math.inf, 1.5], 0.5),
        ([math.inf], [-math.inf], math.inf),
        ([math.nan, 2.0], [math.nan, 2.0], 0.0),
        ([math.nan], [2.0], math.inf),
        ([], [], 0.0),
    ],
)
def test_numbers_that_are_not_finite_are_compared_too(first, second, apart):
    assert fairness._apart(np.array(first), np.array(second)) == apart


def test_only_names_keep_their_capital_in_a_sentence():
    none = np.zeros(0, dtype=np.int32)
    runs = [
        Recording(RunConfig(data="blobs", loss=loss), none, none)
        for loss in ("ContrastiveLoss", "NTXentLoss")
    ]
    assert distance_words(runs, ["A", "B"]).startswith(
        "A measures Euclidean distance of normalised embeddings; B measures cosine similarity. "
    )


def test_free_points_are_no_held_out_samples():
    none = np.zeros(0, dtype=np.int32)
    for encoder, said in (
        ("free", "Pairs are of training samples."),
        ("mlp", "Pairs are of held-out samples."),
    ):
        recording = Recording(RunConfig(data="blobs", encoder=encoder), none, none)
        assert distance_words([recording], ["A"]).endswith(said)


def test_another_loss_differs(four):
    assert fairness.largest_difference(four[0].recording, four[2].recording) > 0.01
    assert fairness.largest_difference(four[0].recording, four[3].recording) == math.inf


def test_each_side_equals_its_run_alone(four, finished):
    for side in four[:3]:
        alone = finished(side.recording.config).recording
        mine, theirs = side.recording.curves(), alone.curves()
        assert all(np.array_equal(mine[name], theirs[name], equal_nan=True) for name in theirs)
        for frame in side.recording.frames:
            lone = alone.at(frame.step)
            assert frame.step == lone.step
            assert identical(frame.positions, lone.positions)
            assert identical(frame.histogram, lone.histogram)


def test_a_side_keeps_few_frames_and_the_last(four):
    steps = [frame.step for frame in four[0].recording.frames]
    assert steps[0] == 0
    assert steps[-1] == 30
    assert len(steps) <= MOMENTS
    assert four[0].ms_per_step > 0


def test_divergence_is_a_reason_not_an_error(four):
    assert [side.state for side in four] == ["finished", "finished", "finished", "diverged"]
    assert "lower the learning rate" in four[3].reason
    assert four[0].reason == ""


def test_what_is_shared_is_read_from_the_recordings(four):
    recordings = [side.recording for side in four[:3]]
    assert fairness.same_start(recordings)
    assert fairness.same_batches(recordings) == len(recordings[0].frames)
    assert fairness.sentences(recordings) == (
        "Checked: all begin with the same weights (their maps at step 0 are equal) and saw the same samples "
        f"at all {len(recordings[0].frames)} recorded steps that they share.",
    )


def test_what_is_not_shared_is_said():
    other = [
        {"loss": "ContrastiveLoss", "steps": "2"},
        {"loss": "ContrastiveLoss", "seed": "1", "steps": "2"},
    ]
    said = " ".join(fairness.sentences([side.recording for side in duel(line_up(BASE, other))]))
    assert "They differ in seed" in said
    assert "maps at step 0 differ" in said
    assert "their batches differ" in said


@pytest.mark.parametrize("count", [1, 5])
def test_two_to_four_take_part(count):
    with pytest.raises(ParameterError, match=f"takes 2 to 4 runs, got {count}"):
        duel([RunConfig(data="blobs", steps=1)] * count)


def test_names_tell_contenders_apart():
    entries = [
        {"loss": "ContrastiveLoss", "ContrastiveLoss.neg_margin": "0.5"},
        {"loss": "ContrastiveLoss", "lr": "0.01"},
    ]
    assert names(line_up(BASE, entries)) == (
        "A: Contrastive (negative margin 0.5, learning rate 0.003)",
        "B: Contrastive (learning rate 0.01)",
    )


def test_an_error_names_the_contender():
    with pytest.raises(ParameterError, match=r"^B: no loss is called 'X'"):
        line_up(BASE, [{"loss": "NTXentLoss"}, {"loss": "X"}])


def test_a_measure_is_the_last_known_at_a_step(four):
    curves = four[0].recording.curves()
    known = np.isfinite(curves["map_at_r"])
    third = int(curves["step"][known][2])
    assert value(four[0].recording, "map_at_r", third) == curves["map_at_r"][known][2]
    assert value(four[0].recording, "map_at_r", third - 1) == curves["map_at_r"][known][1]
    assert math.isnan(value(four[0].recording, "map_at_r", -1))


@pytest.mark.parametrize(
    ("values", "better", "place"),
    [
        ([0.2, 0.5], "higher", 1),
        ([0.2, 0.5], "lower", 0),
        ([0.5, 0.5], "higher", -1),
        ([0.2, 0.5], "", -1),
        ([math.nan, 0.5], "higher", -1),
        ([math.nan, 0.5, 0.1], "lower", 2),
    ],
)
def test_the_best_is_one_or_none(values, better, place):
    assert best(values, better) == place


def test_the_shipped_comparison_is_what_training_gives():
    assert example.staleness() == ""
    assert [side.recording.config.loss for side in example.example()] == ["ContrastiveLoss", "NTXentLoss"]
    assert all(side.recording.frames[-1].step == 300 for side in example.example())
