"""Insights: each trouble trips its own finding, on real runs where one can be made."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from lab import presets
from lab.config import RunConfig
from lab.detectors.finding import temperature_cure
from lab.insights import insights
from lab.pairing import SIZES, TWO_VIEWS
from lab.run import Run
from losslib import catalog

Small = Callable[..., RunConfig]
Finished = Callable[[RunConfig], Run]


def kinds(run: Run) -> set[str]:
    return {insight.kind for insight in insights(run.recording)}


def test_a_healthy_run_only_says_its_active_share(small: Small, finished: Finished) -> None:
    run = finished(small(steps=60))
    (only,) = insights(run.recording)
    frame = run.recording.latest
    assert frame is not None
    assert only.kind == "active_share"
    assert only.sentence.startswith(f"{100 * frame.active_share:.0f} % of the batch's pairs are active")
    assert only.cure is None


def test_divergence_repeats_the_reason_and_offers_the_default_rate(small: Small, finished: Finished) -> None:
    run = finished(small(lr=1e20, optimizer="sgd", output="none", steps=80))
    first = insights(run.recording)[0]
    assert (first.kind, first.sentence) == ("divergence", run.reason)
    assert first.cure is not None
    assert (first.cure.setting, first.cure.value) == ("lr", "0.003")


def test_one_sample_a_class_has_no_positives(small: Small, finished: Finished) -> None:
    run = finished(small(batch=4, per_class=1, steps=2))
    found = {i.kind: i for i in insights(run.recording)}
    assert "all 4 samples have different labels" in found["no_positives"].sentence
    assert found["no_positives"].cure is not None
    assert found["no_positives"].cure.setting == "per_class"
    assert "no_positives" not in kinds(finished(small(batch=8, per_class=2, steps=2)))


@pytest.mark.parametrize("loss", ["TripletMarginLoss", "MarginLoss"])
def test_without_positives_there_are_no_triplets_and_no_margin_is_asked_for(
    small: Small, finished: Finished, loss: str
) -> None:
    run = finished(small(loss=loss, batch=2, per_class=1, steps=2))
    found = {i.kind: i for i in insights(run.recording)}
    assert found.keys() == {"no_positives", "active_share"}
    assert found["active_share"].sentence == "No pair of the batch has a gradient, and none is positive."


def test_a_satisfied_margin_is_dead_and_asks_for_more(small: Small, finished: Finished) -> None:
    # negatives never nearer than -3, positives never farther than 3: nothing is left to do
    run = finished(small(loss_options={"neg_margin": -3.0, "pos_margin": 3.0}, steps=3))
    found = {i.kind: i for i in insights(run.recording)}
    assert "0.0 % still have a gradient" in found["dead_margin"].sentence
    assert found["dead_margin"].cure is not None
    assert (found["dead_margin"].cure.setting, found["dead_margin"].cure.value) == (
        "ContrastiveLoss.neg_margin",
        "-2.8",
    )


def test_positives_alone_collapse(small: Small, finished: Finished) -> None:
    run = finished(small(loss_options={"neg_margin": -3.0}, steps=100, dim=8, lr=0.01))
    found = {i.kind: i for i in insights(run.recording)}
    frame = run.recording.latest
    assert frame is not None
    assert found["collapse"].value == frame.collapse["mean_cosine"] > 0.99
    assert f"{frame.collapse['mean_cosine']:.3f}" in found["collapse"].sentence


def test_one_point_is_said_once_even_where_recall_is_high(small: Small, finished: Finished) -> None:
    run = finished(small(loss_options={"neg_margin": -3.0}, steps=100, dim=8, lr=0.01))
    recording, frame = run.recording, run.recording.latest
    assert frame is not None
    point = {"spread": 0.001, "effective_rank": 1.0, "mean_cosine": 0.9999}
    low, high = 1.5 * recording.chance, 0.97
    for loss, recall, gradient, active in (
        (5.0, low, 0.0, 1.0),
        (5.0, high, 0.0, 1.0),
        (5.0, high, 1.0, 0.0),
    ):
        one = replace(
            frame,
            collapse=point,
            loss=loss,
            quality={**frame.quality, "recall_at_1": recall},
            gradient_norm=gradient,
            active_share=active,
        )
        found = {i.kind: i for i in insights(recording, one)}
        assert found.keys() == {"collapse", "active_share"}
        told = found["collapse"].sentence
        assert told.startswith("All embeddings point the same way: their mean cosine is 1.000")
        assert told.endswith("Recall@1 is still 97 %: it asks which is nearest, not how near.") == (
            recall == high
        )
        cure = found["collapse"].cure
        assert cure is not None
        # a gradient that vanished, or a margin that asks for nothing, is the cause that has a cure
        assert cure.setting == ("ContrastiveLoss.neg_margin" if active == 0 else "lr")


def test_zero_vectors_trip_the_collapse_detector_and_claim_no_gradient() -> None:
    recording = presets.get("collapse").recording()
    for frame in recording.frames[1:]:
        found = {i.kind: i for i in insights(recording, frame)}
        assert (frame.gradient_norm, frame.active_share) == (0, 1)
        assert found["collapse"].sentence == (
            "All embeddings are the zero vector: their spread is 0, at first it was 0.57."
        )
        assert found["active_share"].sentence == (
            "100 % of the batch's pairs are active: "
            "the loss still weighs them, but no gradient reaches the encoder."
        )
    assert "collapse" not in {i.kind for i in insights(recording, recording.frames[0])}


def test_a_spread_that_shrank_is_a_collapse_even_at_length_one(small: Small, finished: Finished) -> None:
    run = finished(small(steps=60))
    frame = run.recording.latest
    assert frame is not None
    assert run.config.output == "l2"
    first = run.recording.frames[0].collapse["spread"]
    for share, collapsed in ((0.01, True), (0.5, False)):
        spread = {**frame.collapse, "spread": share * first}
        found = {i.kind for i in insights(run.recording, replace(frame, collapse=spread))}
        assert ("collapse" in found) == collapsed


def test_a_low_temperature_is_named_where_few_pairs_carry_weight(small: Small, finished: Finished) -> None:
    run = finished(small(loss="NTXentLoss", loss_options={"temperature": 0.001}, steps=40))
    assert "low_temperature" in kinds(run)
    assert "low_temperature" not in kinds(finished(small(loss="NTXentLoss", steps=40)))


def test_a_gradient_that_vanished_is_not_mistaken_for_success(small: Small, finished: Finished) -> None:
    run = finished(small(lr=1e6, optimizer="sgd", steps=40))
    frame = run.recording.latest
    assert frame is not None
    spread_out = replace(frame, collapse=run.recording.frames[0].collapse)
    assert "vanished_gradient" in {insight.kind for insight in insights(run.recording, spread_out)}
    found = {insight.kind: insight.sentence for insight in insights(run.recording)}
    assert found.keys() == {"collapse", "active_share"}
    assert found["active_share"].endswith("the loss still weighs them, but no gradient reaches the encoder.")


def test_cures_of_a_rate_far_too_high_are_not_just_a_tenth_of_it(small: Small, finished: Finished) -> None:
    run = finished(small(lr=1e6, optimizer="sgd", steps=40))
    cure = next(i.cure for i in insights(run.recording) if i.kind == "collapse")
    assert cure is not None
    assert (cure.setting, cure.value) == ("lr", "0.003")  # the default; a tenth would vanish again
    run = finished(small(lr=float(cure.value), optimizer="sgd", steps=40))
    assert not {"vanished_gradient", "collapse"} & kinds(run)


def test_points_without_an_encoder_that_are_still_at_chance_say_why(small: Small, finished: Finished) -> None:
    run = finished(small(encoder="free", lr=1e-5, steps=60, batch=8, per_class=2))
    found = {i.kind: i for i in insights(run.recording)}
    drawn = 60 * 8 / len(run.recording.probe)
    assert f"so far about {drawn:.2g} times each" in found["slow_points"].sentence
    assert found["slow_points"].cure is not None
    assert found["slow_points"].cure.value == "0.0001"
    assert "slow_points" not in kinds(finished(small(encoder="free", lr=0.1, steps=200)))


def test_embeddings_on_a_line_are_flat(small: Small, finished: Finished) -> None:
    run = finished(small(steps=60, dim=3))
    frame = run.recording.latest
    assert frame is not None
    line = replace(frame, collapse={**frame.collapse, "effective_rank": 1.05})
    assert "flat" in {i.kind for i in insights(run.recording, line)}
    assert "1.1 of 3 directions" in next(
        i.sentence
        for i in insights(run.recording, replace(line, collapse={**line.collapse, "effective_rank": 1.1}))
        if i.kind == "flat"
    )


def test_no_pairs_at_all_says_nothing_about_activity(small: Small, finished: Finished) -> None:
    run = finished(small(steps=2))
    frame = run.recording.latest
    assert frame is not None
    bare = replace(frame, active_share=np.nan)
    assert insights(run.recording, bare) == ()


def test_a_cure_of_the_temperature_turns_the_option_that_sets_it() -> None:
    cured = 0
    for name, cls in catalog.losses().items():
        if SIZES & {*cls.needs} or TWO_VIEWS in cls.needs or not cls().marks():
            continue
        if cls().marks()[0].kind != "temperature":
            continue
        config = RunConfig(loss=name)
        for warmer in (True, False):
            cure = temperature_cure(config, warmer)
            turned = RunConfig.from_settings({**config.to_settings(full=True), cure.setting: cure.value})
            assert cls(**dict(turned.loss_options)).marks()[0].value == pytest.approx(0.1), name
        cured += 1
    assert cured >= 7


def test_embeddings_that_are_not_finite_before_any_update_are_no_matter_of_the_rate(small: Small) -> None:
    recording = Run(small(steps=2)).recording
    recording.state, recording.reason = "diverged", "The loss is NaN at step 0, before any update: look."
    (only,) = insights(recording)
    assert only.kind == "divergence"
    assert only.cure is not None
    assert only.cure.setting == ""
    assert "learning rate" not in only.cure.text


def test_a_drift_is_explained_by_what_the_loss_sees(small: Small, finished: Finished) -> None:
    for loss, directions in (("NTXentLoss", True), ("SphereFaceLoss", False), ("CenterLoss", False)):
        run = finished(small(loss=loss, output="none", steps=2))
        frame = run.recording.latest
        assert frame is not None
        long = replace(frame, positions=frame.positions * 1000, embeddings=None)
        found = {one.kind: one.sentence for one in insights(run.recording, long)}
        assert ("looks at directions alone" in found["norm_drift"]) == directions


def test_a_gradient_that_vanished_is_no_swapped_sign(small: Small, finished: Finished) -> None:
    run = finished(small(steps=60))
    frame, first = run.recording.latest, run.recording.frames[0]
    assert frame is not None
    alike = frame.histogram._replace(positive=frame.histogram.negative)
    for share, swapped in ((0.1, True), (1e-5, False)):
        now = replace(frame, histogram=alike, loss=first.loss / 2, gradient_norm=share * first.gradient_norm)
        found = {insight.kind for insight in insights(run.recording, now)}
        assert ("swapped_sign" in found, "vanished_gradient" in found) == (swapped, not swapped)
