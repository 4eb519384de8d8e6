"""Each figure on a normal, an empty and a one-point input: what it shows are the numbers it was given."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from lab.figures.embedding_map import embedding_map
from lab.figures.learning_curves import learning_curves
from lab.figures.pair_distances import pair_distances
from lab.figures.palette import COLOURS, SYMBOLS, class_style
from lab.frame import Histogram
from losslib.types import Mark

ROOT = Path(__file__).resolve().parents[3]


def test_map_has_a_trace_for_each_class_that_has_points():
    positions = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    figure = embedding_map(positions, np.array([2, 0, 2]), ("a", "b", "c"), np.array([10, 11, 12]))
    assert [trace.name for trace in figure.data] == ["a", "c"]
    assert figure.data[1].x.tolist() == [0.0, 4.0]
    assert figure.data[1].y.tolist() == [1.0, 5.0]
    assert figure.data[1].customdata.tolist() == [[10], [12]]
    assert figure.data[1].marker.symbol == SYMBOLS[2]
    assert figure.layout.yaxis.scaleanchor == "x"


def test_map_of_one_point_and_of_none():
    one = embedding_map(np.array([[1.0, 2.0]]), np.array([0]), ("only",))
    assert [trace.name for trace in one.data] == ["only"]
    none = embedding_map(np.zeros((0, 2)), np.zeros(0, dtype=int), ("a",))
    assert len(none.data) == 0
    assert none.layout.annotations[0].text == "There are no points to show."


def test_distances_are_shares_at_the_middle_of_their_bins():
    histogram = Histogram(0.0, 2.0, np.array([3, 1]), np.array([0, 5]))
    marks = (Mark("line", "negative", 1.5, "m", "negative margin"), Mark("gap", "both", 0.2, "m", "margin"))
    figure = pair_distances(histogram, marks, "cosine similarity", inverted=True)
    assert figure.data[0].x.tolist() == [0.5, 1.5]
    assert figure.data[0].y.tolist() == [0.75, 0.25]
    assert figure.data[1].y.tolist() == [0.0, 1.0]
    assert [shape.x0 for shape in figure.layout.shapes] == [1.5]
    assert figure.layout.xaxis.title.text == "cosine similarity<br>(larger is closer)"
    assert figure.data[0].hovertemplate.startswith("positive pairs: %{hovertext} at ")
    assert list(figure.data[0].hovertext) == ["75.0 %", "25.0 %"]
    assert figure.layout.yaxis.range[1] >= 1.15  # the margin's name stands above the tallest bar, of 1


def test_no_hover_writes_a_share_without_its_space():
    files = (ROOT / "lab" / "figures").glob("*.py")
    assert not [file.name for file in files if re.search(r"%\{+y:\.\d%", file.read_text(encoding="utf-8"))]


def test_distances_of_one_pair_and_of_none():
    one = pair_distances(Histogram(0.0, 1.0, np.array([1]), np.array([0])))
    assert [trace.name for trace in one.data] == ["positive pairs (1)"]
    none = pair_distances(Histogram(0.0, 1.0, np.array([0]), np.array([0])))
    assert none.layout.annotations[0].text == "There are no pairs to measure."


def curves(count):
    steps = np.arange(count, dtype=float)
    return {"step": steps, "loss": steps + 1, "recall_at_1": steps / 10, "map_at_r": np.full(count, np.nan)}


def test_curves_leave_out_what_was_not_computed():
    figure = learning_curves(curves(4), chance=0.1)
    assert [trace.name for trace in figure.data] == ["loss", "recall@1"]
    assert figure.data[0].y.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert figure.data[1].y.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert [shape.y0 for shape in figure.layout.shapes] == [0.1]


def test_curves_of_one_step_and_of_none():
    assert learning_curves(curves(1)).data[0].mode == "markers"
    assert "There are no steps yet." in [note.text for note in learning_curves(curves(0)).layout.annotations]


@pytest.mark.parametrize("number", [0, 9, 10, 25])
def test_ten_classes_differ_in_colour_and_in_symbol(number):
    assert class_style(number) == {"color": COLOURS[number % 10], "symbol": SYMBOLS[number % 10]}
    assert len(set(COLOURS)) == len(set(SYMBOLS)) == 10


def test_the_theme_uses_the_same_colours():
    theme = tomllib.loads((ROOT / ".streamlit/config.toml").read_text(encoding="utf-8"))["theme"]
    assert theme["light"]["chartCategoricalColors"] == list(COLOURS)
    assert (
        len(theme["dark"]["chartCategoricalColors"])
        == len(set(theme["dark"]["chartCategoricalColors"]))
        == 10
    )
