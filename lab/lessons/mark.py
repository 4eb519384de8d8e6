"""A prediction held against the runs: right or not, what was measured, and what to take away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lab.lessons import Lesson
from lab.lessons.measures import bins, measured, shown, text_of
from lab.lessons.question import CHOICE, NUMBER, Prediction, Question
from lab.recording import Recording
from lab.short import short
from losslib.errors import ParameterError


@dataclass(frozen=True)
class Mark:
    """What came of a prediction.

    Args:
        right: whether it agrees with the run.
        verdict: one sentence with both, the prediction and what was measured.
        answer: what would have been right: number of the choice, the number, or the bars' shares.
        takeaway: with the numbers of these runs in it.
        values: every measure of the lesson.
    """

    right: bool
    verdict: str
    answer: Prediction
    takeaway: str
    values: dict[str, float]


def mark(lesson: Lesson, prediction: Prediction, recordings: Mapping[str, Recording]) -> Mark:
    """Marks a prediction from the runs themselves.

    Args:
        lesson: which.
        prediction: number of a choice, a number, or a sketch's bars.
        recordings: of every run of the lesson, by its name.

    Raises:
        ParameterError: no such prediction, a run is missing, or a run has broken down.
    """
    given = lesson.question.check(prediction)
    for run in lesson.runs:
        recording = recordings.get(run.name)
        if recording is None or not recording.frames:
            raise ParameterError(f"the run {run.title!r} has nothing to mark from")
        if (
            recording.reason
            and recording.latest is not None
            and recording.latest.step < recording.config.steps
        ):
            raise ParameterError(f"the run {run.title!r} stopped early: {recording.reason}")
    values = measured(lesson.measures, recordings)
    texts = shown(lesson.measures, values)
    right, answer, verdict = answered(lesson, given, values, recordings)
    return Mark(right, verdict, answer, lesson.takeaway.format(**texts), values)


def answered(
    lesson: Lesson, given: Prediction, values: Mapping[str, float], recordings: Mapping[str, Recording]
) -> tuple[bool, Prediction, str]:
    """Whether it is right, what is, and both in one sentence."""
    question = lesson.question
    if question.kind == CHOICE:
        value = values["answer"]
        text = text_of(value, lesson.measures["answer"].get("show", "number"))
        place = right_choice(question, value)
        said = question.choices[place].text
        return place == given, place, f"Measured: {text}. The answer is: {said}."
    if question.kind == NUMBER:
        value = values["answer"]
        if lesson.measures["answer"].get("show") == "percent":
            value *= 100
        unit = f" {question.unit}" if question.unit else ""
        off = abs(value - float(given))  # type: ignore[arg-type]
        verdict = (
            f"Measured: {short(value)}{unit}. You said {given:g}{unit}, which is {short(off)} off; "
            f"up to {question.tolerance:g} counts as right."
        )
        return off <= question.tolerance, value, verdict
    drawn = normalised(given)
    truth = histogram_shares(question, recordings[question.run])
    covered = float(np.minimum(drawn, truth).sum())
    verdict = (
        f"Your sketch covers {100 * covered:.0f} % of the histogram; {100 * question.overlap:.0f} % counts "
        "as right."
    )
    return covered >= question.overlap, tuple(truth), verdict


def right_choice(question: Question, value: float) -> int:
    """Number of the choice whose range holds the value. Raises ParameterError when none does, as for NaN."""
    for place, choice in enumerate(question.choices):
        if choice.low <= value < choice.high:
            return place
    raise ParameterError("the run gave no number to mark from")


def normalised(bars: Prediction) -> np.ndarray:
    """A sketch's bars as shares of 1."""
    drawn = np.asarray(bars, dtype=np.float64)
    return drawn / drawn.sum()


def histogram_shares(question: Question, recording: Recording) -> np.ndarray:
    """The run's last histogram in the sketch's bars, as shares; the end bars hold what is beyond the axis."""
    middles, counts = bins(recording.frames[-1], question.side)
    place = np.clip(np.digitize(middles, question.edges()) - 1, 0, question.bins - 1)
    shares = np.bincount(place, weights=counts, minlength=question.bins)
    total = shares.sum()
    if not total:
        raise ParameterError("the run has no such pairs to mark from")
    return shares / total
