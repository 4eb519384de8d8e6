"""Lessons: their files hold together, and marks agree with answers that are worked out another way."""

import re
import string

import pytest

import datasets
from benchmarks.lessons import ANSWERS, one_seed
from lab import glossary
from lab.lessons import FOLDER, get, lessons
from lab.lessons import failures as gallery
from lab.lessons.__main__ import staleness
from lab.lessons.question import CHOICE, NUMBER, SKETCH
from lab.links import read_settings
from losslib.errors import ParameterError

NAMES = [lesson.name for lesson in lessons()]
# What the field knows of each; the marks are held against it, not made from it.
KNOWN = {
    "euclidean_or_cosine": "fewer than half",
    "margin_and_dead_zone": "it rises by more than 10 points",
    "temperature": "fewer than a third",
    "hard_semihard_easy": "it stays as it was, within 2 points",
    "dcl_small_batches": "more than twice as large",
    "one_threshold": "more than three quarters",
    "labels_or_views": "60 % or more",
    "normalised_or_not": "it grows to more than twice what it was",
}


def test_the_ten_lessons_are_there_in_order_and_ask_in_three_ways():
    assert [lesson.title for lesson in lessons()] == [
        "Euclidean or cosine",
        "The margin and the dead zone",
        "Positives only collapse",
        "Temperature",
        "Hard, semi-hard, easy",
        "Why DCL learns in small batches",
        "What beta does in margin loss",
        "One threshold for all classes",
        "Labels, continuous labels, views",
        "Normalised or not",
    ]
    assert {lesson.question.kind for lesson in lessons()} == {CHOICE, NUMBER, SKETCH}
    assert set(ANSWERS) == set(NAMES)


@pytest.mark.parametrize("lesson", lessons(), ids=NAMES)
def test_a_lesson_is_quick_and_names_only_what_there_is(lesson):
    configs = lesson.configs(seed=5)
    assert 1 <= len(configs) <= 3
    for config in configs.values():
        assert config.steps <= 150
        assert config.seed == 5
        assert config.data_values.get("points", 0) <= 1000
        assert config.data in datasets.catalog()
    named = {name for _, name, _, _ in string.Formatter().parse(lesson.takeaway) if name}
    assert named
    assert named <= set(lesson.measures)
    assert all(glossary.define(term) for term in lesson.terms)
    assert (FOLDER.parents[1] / "pages" / f"{lesson.next.page}.py").exists()
    if lesson.next.page == "train" and "preset" not in lesson.next.settings:
        assert read_settings(lesson.next.settings)[1] == ()
    if lesson.next.page == "learn":
        assert gallery.get(lesson.next.settings["learn.failure"])


@pytest.mark.parametrize("name", NAMES)
def test_marks_agree_with_an_answer_from_the_encoder_itself(name):
    _, _, agrees, words, value = one_seed((name, 1))
    assert agrees
    if name in KNOWN:
        assert words == KNOWN[name]
    elif name == "beta":
        assert value == pytest.approx(60, abs=8)  # three of five other places on the circle
    else:
        assert value > 0.95  # of the negatives, in the first of five bars


@pytest.mark.parametrize("name", ["margin_and_dead_zone", "beta", "positives_only", "dcl_small_batches"])
def test_they_agree_for_another_seed_too(name):
    assert one_seed((name, 2))[2]


@pytest.mark.parametrize("name", [name for name in NAMES if get(name).shipped()])
def test_shipped_recordings_are_what_training_gives(name):
    assert staleness(get(name)) == ""


def test_only_the_seed_of_the_recordings_gets_them():
    lesson = get("temperature")
    assert list(lesson.shipped(0)) == ["a", "b", "c"]
    assert lesson.shipped(1) == {}


def test_a_name_that_nearly_fits_is_offered():
    with pytest.raises(ParameterError, match="no lesson is called 'temprature'; did you mean temperature"):
        get("temprature")


def test_a_card_says_what_a_lesson_teaches_with_what_and_for_how_long():
    for lesson in lessons():
        assert re.fullmatch(r"[A-Z][^.]+\.", lesson.aim), f"{lesson.name}: one sentence"
        assert len(lesson.aim) <= 100, lesson.name
    short, long = get("positives_only"), get("labels_or_views")
    assert (short.minutes, long.minutes) == (2, 3)
    assert get("dcl_small_batches").losses == ("NTXentLoss", "DecoupledContrastiveLoss")
    assert not short.recorded
    assert long.recorded
