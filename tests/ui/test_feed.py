"""What one viewer is told: names and directions, pictures once, every frame once, parts of the history."""

import logging
import re
import struct
import time

import numpy as np
import pytest

from lab.config import RunConfig
from lab.frame import Glance
from losslib.errors import ParameterError
from ui.errors import explain
from ui.live.about import TERMS, describe
from ui.live.feed import Feed
from ui.navigation import ROOT, entries, read_entry
from ui.server import scheduler

KINDS = {8: "links", 1: "hello", 2: "frame", 3: "state", 4: "images", 5: "glance"}


def opened(**settings):
    run = scheduler().open(RunConfig(**settings))
    run.attach("test")
    until(lambda: run.state == "ready")
    return run


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def contents(packet):
    """Kinds of the messages, and the steps of the frames."""
    kinds, steps, at = [], [], 0
    while at < len(packet):
        _, kind, _, length = struct.unpack_from("<BBHI", packet, at)
        kinds.append(KINDS[kind])
        if kind == 2:
            steps.append(struct.unpack_from("<I", packet, at + 8)[0])
        at += 8 + length
    return kinds, steps


def test_pictures_come_once_after_the_first_frames():
    run = opened(data="digits", batch=32, per_class=2)
    feed = Feed(run)
    assert contents(feed.packet())[0] == ["hello", "frame", "state"]
    assert contents(feed.packet())[0] == ["images"]
    assert feed.packet() == b""
    scheduler().close(run.token)


def test_parts_of_the_history_add_up_to_the_whole():
    run = opened(data="blobs", data_options={"points": 80}, batch=16, per_class=2, steps=30)
    run.play()
    until(lambda: run.state == "finished")
    steps = {frame.step for frame in run.recording.frames}
    seen = set()
    for part in range(10):
        seen |= set(contents(Feed(run, images=False, skip=7 * part).packet())[1])
    assert seen == steps
    feed, seen = Feed(run), []
    while packet := feed.packet():
        seen += contents(packet)[1]
    assert sorted(seen) == sorted(steps), "each frame once"
    assert seen[7] == 30, "the newest with the first packet"
    scheduler().close(run.token)


def test_a_glance_is_sent_once_and_only_where_it_is_newer_than_the_frames():
    run = opened(data="blobs", data_options={"points": 80}, batch=16, per_class=2, steps=300)
    run.advance(213)  # not a regular frame's step, but a frame asked for by hand
    until(lambda: run.step == 213)
    run.glances.newest = Glance(213, run.recording.latest.positions, run.recording.latest.histogram)
    feed = Feed(run)
    kinds = []
    while packet := feed.packet():
        kinds += contents(packet)[0]
    assert "glance" not in kinds
    run.glances.newest = run.glances.newest._replace(step=217)
    assert contents(feed.packet())[0] == ["glance"]
    assert feed.packet() == b""
    scheduler().close(run.token)


def test_pictures_do_not_wait_for_ever_while_it_trains():
    run = opened(data="digits", batch=32, per_class=2)
    feed = Feed(run)
    seen = []
    for step in range(1, 40):  # something new each time
        latest = run.recording.latest
        run.glances.newest = Glance(step, latest.positions, latest.histogram)
        seen.append(contents(feed.packet())[0])
    assert sum("images" in kinds for kinds in seen) == 1
    assert all("glance" in kinds for kinds in seen)
    scheduler().close(run.token)


@pytest.mark.parametrize(
    ("settings", "inverted", "circle"),
    [
        ({"loss": "ContrastiveLoss"}, False, True),
        ({"loss": "NTXentLoss"}, True, True),
        ({"loss": "NTXentLoss", "dim": 8}, True, False),
        ({"loss": "ContrastiveLoss", "output": "none"}, False, False),
    ],
)
def test_directions_are_told(settings, inverted, circle):
    about = describe(RunConfig(**settings), np.array([0, 0, 0, 1]), ("a", "b"))
    assert (about["inverted"], about["unit_circle"]) == (inverted, circle)
    assert about["chance"] == pytest.approx(0.75**2 + 0.25**2)
    assert set(about["glossary"]) == set(TERMS)
    assert about["pairwise"]
    assert ("cosine" in about["distance"].lower()) is inverted


def test_chance_may_be_that_of_another_rule_and_some_losses_know_no_pairs():
    config = RunConfig(data="swiss_roll", pairing="continuous")
    about = describe(config, np.array([0, 1]), ("a", "b"), 0.3)
    assert (about["chance"], about["aligned"]) == (0.3, "every positive pair equal")
    for loss, pairing in (("ArcFaceLoss", "label"), ("VICRegLoss", "views")):
        about = describe(RunConfig(data="digits", loss=loss, pairing=pairing), np.array([0, 1]), ("a", "b"))
        assert not about["pairwise"]


def test_an_error_is_a_number_for_people_and_a_traceback_for_the_log(caplog):
    with caplog.at_level(logging.ERROR, logger="losslab"):
        sentence = explain(KeyError("secret"))
    number = re.search(r"number (\d{6})", sentence)[1]
    assert "secret" not in sentence
    assert number in caplog.text
    assert "secret" in caplog.text
    assert explain(ParameterError("margin must be a number")) == "margin must be a number"


def test_pages_declare_themselves():
    train = read_entry(ROOT / "pages/train.py")
    assert (train.path, train.title, train.group) == ("pages/train.py", "Train", "Train")
    assert train.summary.startswith("Watch an encoder learn")
    assert entries()[0].title == "Home"


def test_links_are_sent_once_to_who_asked():
    run = opened(data="blobs", data_options={"points": 80}, batch=16, per_class=2, steps=30)
    feed, other = Feed(run), Feed(run)
    feed.packet()
    other.packet()
    feed.ask_links(7)  # no frame of that step: no answer
    assert feed.packet() == b""
    feed.ask_links(0)
    packet = feed.packet()
    assert contents(packet)[0] == ["links"]
    step, positives, negatives = struct.unpack_from("<III", packet, 8)
    frame = run.recording.frames[0]
    counts = (int(frame.histogram.positive.sum()), int(frame.histogram.negative.sum()))
    assert (step, positives, negatives) == (0, *counts)
    assert feed.packet() == other.packet() == b""
    scheduler().close(run.token)


def test_long_names_of_classes_are_cut_for_legends_and_told_whole_beside():
    whole = ("short", "whale " * 40 + "end")
    about = describe(RunConfig(), np.array([0, 1]), whole)
    assert about["classes"] == ["short", "whale whale…e whale end"]
    assert about["labels"] == [*whole]
    assert "labels" not in describe(RunConfig(), np.array([0, 1]), ("a", "b"))
