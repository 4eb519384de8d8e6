"""The Compare page: opens on a comparison, runs another, refuses in sentences, and shows exactly zero."""

import json
import struct
import time

import numpy as np
import pytest

from lab.compare import example, words
from lab.compare.line_up import names
from lab.compare.moved import Moved
from lab.config import RunConfig
from lab.recording import Recording
from tests.ui.opening import button, component, opened_at, said
from ui import compare_views
from ui.choice import desk
from ui.replay.packet import packet

SMALL = {
    "compare.data": "blobs",
    "compare.blobs.points": "200",
    "compare.batch": "32",
    "compare.per_class": "4",
    "compare.steps": "12",
}


def opened(query):
    return opened_at("compare", query)


def replay(at):
    """What the replay is given: the step where it begins, and its header."""
    told = component(at).bytes
    start, length = struct.unpack("<II", told[:8])
    return start, json.loads(told[8 : 8 + length])


def rows(at, step=None):
    """The table of numbers at a step, by the name of the measure; by default at the last."""
    _, told = replay(at)
    place = told["steps"].index(step) if step is not None else -1
    cells = [[cell.strip("*") for cell in row] for row in told["moments"][place]["rows"]]
    return {row[0].partition(" (")[0]: row[1:] for row in cells}


@pytest.fixture(scope="module")
def shipped():
    return opened({})


def test_it_opens_on_a_comparison_without_training(shipped):
    assert not shipped.exception
    assert not shipped.warning
    assert button(shipped, "Run this comparison") is None
    assert len(shipped.get("plotly_chart")) == 1, "who moved; the rest is the replay"
    assert "saw the same samples at all" in said(shipped)
    start, told = replay(shipped)
    assert start == told["steps"][-1] == 300
    assert "Recall@1: A 0.8" in told["moments"][-1]["maps"]
    table = rows(shipped)
    assert table["recall@1"][2] == "perfect is 1; chance 0.10"
    assert table["time a step"][2].startswith("recorded with this example")


def test_the_replay_has_the_numbers_of_every_step(shipped):
    end, start = rows(shipped), rows(shipped, 0)
    assert start["recall@1"][0] == start["recall@1"][1]  # the same weights
    assert start["loss of the batch"][0] != start["loss of the batch"][1]
    assert float(end["recall@1"][0]) > float(start["recall@1"][0]) + 0.3
    _, told = replay(shipped)
    assert told["moments"][0]["maps"].startswith("Step 0: 1000 of 2000 samples")
    first, second = (run["curves"][0] for run in told["runs"])
    assert [step for step, _ in first] == [step for step, _ in second]
    assert first[-1][1] == pytest.approx(float(end["recall@1"][0]), abs=6e-4)


def test_the_points_of_the_replay_are_the_aligned_maps():
    sides = example.example()
    recordings = [side.recording for side in sides]
    content = packet(sides, names([one.config for one in recordings]))
    (length,) = struct.unpack("<I", content[:4])
    told = json.loads(content[4 : 4 + length])
    steps, points, bins = told["steps"], told["points"], told["bins"]
    at = 4 + length + -length % 4
    index = np.frombuffer(content, "<u4", points, at)
    assert index.tolist() == recordings[0].probe[:points].tolist()
    at += 4 * points
    assert np.frombuffer(content, "<u2", points, at).tolist() == recordings[0].labels[:points].tolist()
    at += 2 * points + 2 * points % 4
    frame = 4 * points + 8 * bins
    assert len(content) == at + 2 * len(steps) * frame
    place = steps.index(100)
    at += (len(steps) + place) * frame  # of the second run
    x_low, y_low, scale, low, high = told["spans"][1][place]
    grid = np.frombuffer(content, "<u2", 2 * points, at).reshape(-1, 2)
    laid = words.laid_out(recordings, 100)[1][:points]
    assert np.abs(grid * scale + [x_low, y_low] - laid).max() <= scale
    histogram = recordings[1].at(100).histogram
    assert (low, high) == histogram[:2]
    counts = np.frombuffer(content, "<f4", 2 * bins, at + 4 * points)
    assert counts.tolist() == [*histogram.positive, *histogram.negative]


def test_a_link_opens_at_its_step_with_figures():
    at = opened({"compare.step": "101", "compare.figures": "true"})
    assert replay(at)[0] == 100, "the last recorded step before it"
    assert len(at.get("plotly_chart")) == 4
    assert "Step 100: 600 of 2000 samples" in said(at)


def test_a_loss_against_itself_shows_zero_and_three_fit(shipped):
    query = {**SMALL, "compare.a": "NTXentLoss", "compare.b": "NTXentLoss", "compare.c": "TripletMarginLoss"}
    query |= {"compare.c.TripletMarginLoss.margin": "0.3"}
    at = opened(query)
    assert not at.warning
    run = button(at, "Run this comparison")
    assert "3 runs of 12 steps, 36 together" in said(at)
    assert "Nothing is shown below until it has run." in said(at)
    at = run.click().run()
    deadline = time.monotonic() + 120
    while any(job.state in ("waiting", "running") for job in desk()._jobs.values()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    at = at.run()
    assert not at.exception
    assert "no number of any frame differs; the difference is 0" in said(at)
    table = rows(at)
    assert all(cells[0] == cells[1] for name, cells in table.items() if name != "time a step")
    assert table["loss of the batch"][2] != table["loss of the batch"][0]
    assert table["time a step"][3] == "this machine, now; median, one core"
    assert at.get_by_key("compare.c.TripletMarginLoss.margin").value == 0.3
    at = at.get_by_key("compare between").set_value((0, 2)).run()
    assert "root mean square radii" in said(at)
    # another setting leaves what is shown and offers to run
    at = at.get_by_key("compare.dim").set_value(3).run()
    assert button(at, "Run this comparison") is not None
    assert "Below is the last comparison" in said(at)
    assert rows(at) == table


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"compare.a": "ContrastivLoss"}, "did you mean ContrastiveLoss"),
        ({"compare.a": "none"}, "No loss is called 'none'"),
        ({"compare.a.ContrastiveLoss.neg_margin": "wide"}, "neg_margin must be a finite number"),
        ({"compare.b.lr": "7"}, "The learning rate of a contender must be one of shared"),
        ({"compare.lr": "-1"}, "lr must be a number > 0"),
        ({"compare.colour": "red"}, "There is no setting 'colour'"),
        ({"loss": "NTXentLoss"}, "The page has no setting 'loss'"),
        ({"compare.steps": "100000"}, "at most 40000 steps a sweep"),
        ({"compare.batch": "4096", "compare.per_class": "0"}, "at most 1024 for batch"),
        ({"compare.data": "moons", "compare.encoder": "cnn"}, "needs images"),
    ],
)
def test_what_is_not_possible_is_a_sentence(query, words):
    at = opened(query)
    assert not at.exception
    assert not at.error
    assert any(words in warning.value for warning in at.warning), [w.value for w in at.warning]


def test_classes_of_any_name_stand_in_the_table_as_they_are_spelt():
    none = np.zeros(0, dtype=np.int32)
    recording = Recording(RunConfig(data="blobs"), none, none, ("<b>bold</b>", "a & b"))
    listed = compare_views.listing((Moved(3, 7, 0, 0.5, 1, 0),), recording, ("A", "B"))
    assert "<td>&lt;b&gt;bold&lt;/b&gt;</td><td>0.50</td><td>a &amp; b</td>" in listed


def test_long_names_of_classes_are_cut_in_the_table_and_whole_where_one_points():
    none = np.zeros(0, dtype=np.int32)
    recording = Recording(RunConfig(data="blobs"), none, none, ("a", 'right "whale" ' * 30 + "calf"))
    listed = compare_views.listing((Moved(3, 7, 0, 0.5, 1, 0),), recording, ("A", "B"))
    whole = ("right &quot;whale&quot; " * 30) + "calf"
    # it breaks anywhere, or three beside each other would push the last column out of sight
    cell = f'<td title="{whole}" style="overflow-wrap:anywhere">right &quot;whale…whale&quot; calf</td>'
    assert f"{cell}<td>a</td>" in listed


def test_a_link_to_a_file_that_is_not_here_says_which_file_is_needed():
    at = opened(
        {"compare.data": "file", "compare.file.digest": "0123456789abcdef", "compare.file.name": "v.csv"}
    )
    assert not at.exception
    [warning] = at.warning
    assert (
        "This needs the file v.csv (digest 0123456789abcdef), which this server does not have"
        in warning.value
    )
