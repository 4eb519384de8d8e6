"""Lesson links: a moment survives the trip through a link, and what strangers put there is refused."""

import pytest

from lab.config import Event, RunConfig
from lab.lessons.moment import controls_of, moment, read_moment
from losslib.errors import ParameterError

CONFIG = RunConfig(
    data="blobs", loss="NTXentLoss", steps=80, events=(Event(20, "temperature", 0.5), Event(40, "lr", 0.001))
)


def test_a_moment_comes_back_from_its_link():
    made = moment(CONFIG, 30, ("Play", "temperature"), "What is next?", ("it spreads", "it stays"))
    found, said = read_moment(made.texts())
    assert said == ()
    assert found == made
    assert read_moment(moment(CONFIG).texts())[0] == moment(CONFIG)


def test_everything_wrong_is_left_out_with_a_sentence():
    found, said = read_moment(
        {
            "learn.run": "data=blobs~loss=NTXentLos~batch=1000000",
            "learn.step": "900",
            "learn.show": "Play,neg_margin,Launch",
            "learn.ask": "x" * 301,
            "learn.answers": "a~a",
        }
    )
    assert found == moment(RunConfig(data="blobs"))
    assert len(said) == 6
    assert any("did you mean NTXentLoss" in text for text in said)
    assert any("a moment can show" in text and "'Launch'" in text for text in said)
    assert any("300 letters, got 301" in text for text in said)


def test_what_a_moment_may_have():
    assert controls_of(CONFIG) == ("Play", "Pause", "Step", "Reset", "temperature", "lr")
    for wrong in (
        {"step": 81},
        {"show": ("seed",)},
        {"ask": "?", "answers": ("only one",)},
        {"ask": "?", "answers": tuple("abcdef")},
        {"ask": "?", "answers": ("a", "b" * 81)},
        {"answers": ("a", "b")},
        {"ask": "?", "answers": ("a", "b~c")},
    ):
        with pytest.raises(ParameterError):
            moment(CONFIG, **wrong)
