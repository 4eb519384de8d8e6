"""Questions and marks: which predictions are refused, and what counts as right at the edges."""

from dataclasses import replace

import numpy as np
import pytest

from lab.config import RunConfig
from lab.lessons import get
from lab.lessons.mark import mark
from lab.lessons.measures import end, late, measured, pairs_between, text_of
from lab.lessons.question import Question, read_question
from lab.run import Run
from losslib.errors import ParameterError


def recording(**changes):
    config = {"data": "blobs", "data_options": {"points": 60}, "batch": 12, "per_class": 2, "steps": 4}
    run = Run(RunConfig(**{**config, **changes}))
    for _ in run:
        pass
    return run.recording


@pytest.fixture(scope="module")
def four_steps():
    return recording()


def with_histogram(made, positive, negative, low=0.0, high=2.0):
    """The recording with another last histogram."""
    frame = made.frames[-1]
    histogram = frame.histogram._replace(
        low=low, high=high, positive=np.array(positive), negative=np.array(negative)
    )
    changed = recording()
    changed.frames = [*made.frames[:-1], replace(frame, histogram=histogram)]
    return changed


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("choice", 2),
        ("choice", -1),
        ("choice", True),
        ("choice", 0.5),
        ("number", 101.0),
        ("number", float("nan")),
        ("number", "60"),
        ("sketch", (1.0, 2.0)),
        ("sketch", (0.0, 0.0, 0.0)),
        ("sketch", (1.0, -1.0, 1.0)),
        ("sketch", "abc"),
    ],
)
def test_what_is_no_prediction_is_refused(kind, wrong):
    choices = read_question(
        {
            "kind": "choice",
            "text": "",
            "why": "",
            "choices": [{"text": "low", "to": 0.5}, {"text": "high", "from": 0.5}],
        }
    ).choices
    question = Question(kind, "", "", choices=choices, low=0.0, high=100.0, bins=3)
    with pytest.raises(ParameterError, match="prediction"):
        question.check(wrong)


def test_choices_that_leave_a_gap_or_overlap_are_refused():
    for second in (0.6, 0.4):
        with pytest.raises(ParameterError, match="side by side"):
            read_question(
                {
                    "kind": "choice",
                    "text": "",
                    "why": "",
                    "choices": [{"text": "low", "to": 0.5}, {"text": "high", "from": second}],
                }
            )


def test_a_number_is_right_within_its_tolerance(four_steps):
    # 6 of 10 negatives in bins whose middles, 1.5 and 1.9, lie beyond 1.4: the truth is 60 %
    made = with_histogram(four_steps, [1, 0, 0, 0, 0], [1, 1, 2, 3, 3])
    runs = {"a": made, "b": made}
    lesson = get("beta")
    assert lesson.question.tolerance == 12
    for said, right in ((60, True), (48, True), (72, True), (47, False), (73, False)):
        found = mark(lesson, said, runs)
        assert found.right is right
        assert found.answer == pytest.approx(60)
    assert "You said 47 %, which is 13 off" in mark(lesson, 47, runs).verdict
    assert "60 % of the negatives got beyond 1.4" in mark(lesson, 60, runs).takeaway


def test_a_sketch_is_right_by_what_it_covers(four_steps):
    made = with_histogram(four_steps, [1, 0, 0, 0, 0], [8, 2, 0, 0, 0])
    lesson = get("positives_only")
    assert lesson.question.overlap == 0.6
    truth = mark(lesson, (80, 20, 0, 0, 0), {"a": made})
    assert truth.right
    assert truth.answer == pytest.approx((0.8, 0.2, 0, 0, 0))
    assert "covers 100 %" in truth.verdict
    # min(0.4, 0.8) + min(0.2, 0.2) = 0.6 is just enough; shares count, not heights
    assert mark(lesson, (4, 2, 2, 1, 1), {"a": made}).right
    half = mark(lesson, (35, 20, 15, 15, 15), {"a": made})
    assert not half.right
    assert "covers 55 %" in half.verdict


def test_a_run_that_stopped_early_or_is_missing_is_not_marked(four_steps):
    lesson = get("positives_only")
    with pytest.raises(ParameterError, match="nothing to mark from"):
        mark(lesson, (1, 0, 0, 0, 0), {})
    broken = recording(lr=1e20, optimizer="sgd", output="none", steps=30)
    broken.reason = "The loss stopped being a finite number at step 2."
    with pytest.raises(ParameterError, match="stopped early: The loss stopped"):
        mark(lesson, (1, 0, 0, 0, 0), {"a": broken})


def test_measures_read_curves_and_histograms(four_steps):
    curves = four_steps.curves()
    assert end(four_steps, "loss") == curves["loss"][-1]
    assert end(four_steps, "loss", step=2) == curves["loss"][list(curves["step"]).index(2)]
    assert late(four_steps, "loss") == pytest.approx(curves["loss"][curves["step"] >= 2].mean())
    made = with_histogram(four_steps, [3, 1], [1, 3])
    assert pairs_between(made, "positive", high=1.0) == 0.75
    assert pairs_between(made, "negative", low=1.0) == 0.75
    declared = {
        "x": {"of": "end", "run": "a", "curve": "loss"},
        "y": {"of": "end", "run": "a", "curve": "loss", "step": 0},
        "z": {"of": "ratio", "first": "x", "second": "y"},
    }
    found = measured(declared, {"a": four_steps})
    assert found["z"] == pytest.approx(curves["loss"][-1] / curves["loss"][0])
    with pytest.raises(ParameterError, match="no measure is called 'mood'"):
        measured({"x": {"of": "mood"}}, {"a": four_steps})


def test_values_as_texts():
    assert text_of(0.256, "percent") == "26 %"
    assert text_of(-0.031, "points") == "-3 points"
    assert text_of(7.1234, "number") == "7.12"
    assert text_of(float("nan"), "percent") == "undefined"
