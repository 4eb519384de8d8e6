"""The Compare page: opens on a comparison, runs another, refuses in sentences, and shows exactly zero."""

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from ui.choice import desk

ROOT = Path(__file__).resolve().parents[2]
SMALL = {
    "compare.data": "blobs",
    "compare.blobs.points": "200",
    "compare.batch": "32",
    "compare.per_class": "4",
    "compare.steps": "12",
}


def opened(query):
    at = AppTest.from_file(str(ROOT / "home.py"), default_timeout=60).run()
    at.switch_page("pages/compare.py")
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def button(at, label):
    return next((one for one in at.button if one.label == label), None)


def said(at):
    return " ".join(one.value for kind in ("markdown", "caption", "success", "info") for one in at.get(kind))


def rows(at):
    """The table of numbers, by the name of the measure."""
    table = next(one.value for one in at.markdown if "held against" in one.value)
    cells = [[cell.strip(" *") for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:]]
    return {row[0].partition(" (")[0]: row[1:] for row in cells}


@pytest.fixture(scope="module")
def shipped():
    return opened({})


def test_it_opens_on_a_comparison_without_training(shipped):
    assert not shipped.exception
    assert not shipped.warning
    assert button(shipped, "Run this comparison") is None
    assert len(shipped.get("plotly_chart")) == 4
    text = said(shipped)
    assert "saw the same samples at all" in text
    assert "Recall@1: A 0.8" in text
    table = rows(shipped)
    assert table["recall@1"][2] == "perfect is 1; chance 0.10"
    assert table["time a step"][2].startswith("recorded with this example")


def test_the_slider_moves_all_numbers_to_its_step(shipped):
    end = rows(shipped)
    at = shipped.get_by_key("compare.step").set_value(0).run()
    start = rows(at)
    assert start["recall@1"][0] == start["recall@1"][1]  # the same weights
    assert start["loss of the batch"][0] != start["loss of the batch"][1]
    assert float(end["recall@1"][0]) > float(start["recall@1"][0]) + 0.3
    assert "Step 0: 600 of 2000 samples" in said(at)
    shipped.get_by_key("compare.step").set_value(300).run()


def test_a_loss_against_itself_shows_zero_and_three_fit(shipped):
    query = {**SMALL, "compare.a": "NTXentLoss", "compare.b": "NTXentLoss", "compare.c": "TripletMarginLoss"}
    query |= {"compare.c.TripletMarginLoss.margin": "0.3"}
    at = opened(query)
    assert not at.warning
    run = button(at, "Run this comparison")
    assert "3 runs of 12 steps, 36 together" in said(at)
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
        ({"compare.a.ContrastiveLoss.neg_margin": "wide"}, "neg_margin must be a finite number"),
        ({"compare.b.lr": "7"}, "The learning rate of a contender must be one of shared"),
        ({"compare.lr": "-1"}, "lr must be a number > 0"),
        ({"compare.colour": "red"}, "There is no setting 'colour'"),
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
