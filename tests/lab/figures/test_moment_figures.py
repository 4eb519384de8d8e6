"""Figures of a paused moment: what they hold is what they were given, and the table is what they hold."""

import csv
import io

import numpy as np
import pytest

from lab.figures.embedding_map import Colouring, embedding_map
from lab.figures.learning_curves import learning_curves
from lab.figures.neighbours_kept import neighbours_kept
from lab.figures.norm_histogram import expected_norm, norm_histogram
from lab.figures.pair_distances import pair_distances
from lab.figures.palette import COLOURS_IN_DARK, REFERENCE, SYMBOLS_IN_SPACE
from lab.figures.take_home import as_csv, as_html
from lab.frame import Histogram
from lab.neighbours import Neighbourhoods
from lab.norms import norm_lesson
from losslib.types import Mark

RNG = np.random.default_rng(0)
POSITIONS = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, 6.0], [4.0, 5.0, 7.0]])
CLASSES = np.array([2, 0, 2])


def read(text):
    return list(csv.reader(io.StringIO(text)))


def test_a_map_in_space_has_three_coordinates_equal_scales_and_shapes():
    figure = embedding_map(POSITIONS, CLASSES, ("a", "b", "c"), dark=True)
    assert [trace.type for trace in figure.data] == ["scatter3d", "scatter3d"]
    assert figure.data[1].z.tolist() == [5.0, 7.0]
    assert figure.data[1].marker.symbol == SYMBOLS_IN_SPACE[2]
    assert figure.data[1].marker.color == COLOURS_IN_DARK[2]
    assert figure.layout.scene.aspectmode == "data"


def test_colouring_replaces_the_colour_and_keeps_the_symbol_with_a_grey_legend():
    values = np.array([0.1, 0.5, 0.9])
    figure = embedding_map(POSITIONS[:, :2], CLASSES, ("a", "b", "c"), colouring=Colouring("kept", values))
    drawn = [trace for trace in figure.data if trace.x[0] is not None]
    assert [list(trace.marker.color) for trace in drawn] == [[0.5], [0.1, 0.9]]
    legend = [trace for trace in figure.data if trace.showlegend is not False]
    assert [(trace.name, trace.marker.color) for trace in legend] == [("a", REFERENCE), ("c", REFERENCE)]
    assert (figure.layout.coloraxis.cmin, figure.layout.coloraxis.cmax) == (0, 1)


def test_the_table_of_a_map_has_every_point_once_with_what_hover_shows():
    about = {"distance to own class mean": np.array([0.25, 1 / 3, 2.0]), "nearest": np.array(["b", "c", "b"])}
    colouring = Colouring("kept", np.array([0.1, 0.5, 0.9]))
    figure = embedding_map(POSITIONS, CLASSES, ("a", "b", "c"), about=about, colouring=colouring)
    head, *rows = read(as_csv(figure))
    assert head == ["series", "x", "y", "z", "sample", "distance to own class mean", "nearest", "kept"]
    assert rows == [
        ["a", "2", "3", "6", "1", "0.333333333", "c", "0.5"],
        ["c", "0", "1", "5", "0", "0.25", "b", "0.1"],
        ["c", "4", "5", "7", "2", "2", "b", "0.9"],
    ]
    assert "distance to own class mean %{customdata[1]:.3f}" in figure.data[0].hovertemplate
    assert "nearest %{customdata[2]}<br>" in figure.data[0].hovertemplate


def test_tables_name_what_axes_show():
    histogram = Histogram(0.0, 2.0, np.array([3, 1]), np.array([0, 5]))
    head, *rows = read(as_csv(pair_distances(histogram, distance="distance")))
    assert head == ["series", "distance", "share of pairs"]
    assert rows[0] == ["positive pairs (4)", "0.5", "0.75"]
    assert len(rows) == 4
    assert read(as_csv(embedding_map(np.zeros((0, 2)), CLASSES[:0], ("a",)))) == [["series", "sample"]]


def test_a_saved_page_needs_no_network():
    text = as_html(norm_histogram(norm_lesson(np.eye(3), np.array([0, 0, 1]))))
    assert "Norms of the embeddings" in text
    assert len(text) > 3_000_000
    assert "<script src=" not in text


def test_norms_start_at_zero_and_stand_beside_what_is_expected():
    lesson = norm_lesson(2 * np.eye(4), np.array([0, 0, 1, 1]))
    figure = norm_histogram(lesson, "layernorm")
    assert sum(figure.data[0].y) == pytest.approx(1)
    assert figure.layout.xaxis.range[0] == 0
    assert [shape.x0 for shape in figure.layout.shapes] == [2.0]
    assert figure.layout.annotations[0].text == "√4 = 2"
    assert [expected_norm(o, 9) for o in ("none", "l2", "layernorm", "batchnorm")] == [None, 1, 3, 3]
    zeros = norm_histogram(norm_lesson(np.zeros((3, 2)), np.arange(3)))
    assert zeros.data[0].y[0] == 1


def test_kept_neighbours_stand_beside_chance_at_every_k():
    both = Neighbourhoods(RNG.normal(size=(40, 6)), RNG.normal(size=(40, 2)))
    kept, chance, mark = neighbours_kept(both, 5).data
    assert list(kept.x) == list(range(1, 40))
    assert list(chance.y) == pytest.approx([k / 39 for k in range(1, 40)])
    assert (mark.x[0], mark.y[0]) == (5, kept.y[4])
    assert kept.y[-1] == 1


def test_the_moment_is_marked_on_both_curves():
    steps = np.arange(4.0)
    values = {"step": steps, "loss": steps, "recall_at_1": steps / 9, "map_at_r": steps / 9}
    figure = learning_curves(values, step=2)
    assert [(shape.x0, shape.yref) for shape in figure.layout.shapes] == [(2, "y domain"), (2, "y2 domain")]


def test_a_temperature_is_the_weight_of_a_negative_and_a_gap_begins_at_the_mean_positive():
    histogram = Histogram(-1.0, 1.0, np.array([0, 0, 2, 2]), np.array([4, 4, 2, 0]))
    marks = (
        Mark("temperature", "negative", 0.5, "t", "temperature"),
        Mark("gap", "both", 0.2, "m", "margin"),
    )
    figure = pair_distances(histogram, marks, "cosine similarity", inverted=True)
    weight, gap = (trace for trace in figure.data if trace.type == "scatter")
    # bins lie at -0.75 to 0.75; the closest has weight 1, drawn as high as the tallest bar, 0.5
    assert weight.y == pytest.approx(0.5 * np.exp([-3, -2, -1, 0]))
    assert weight.name == "temperature 0.5: weight of a negative"
    assert list(gap.x) == pytest.approx([0.5, 0.3])
    nearer = pair_distances(Histogram(0.0, 2.0, np.array([1, 0]), np.array([0, 1])), marks)
    weight, gap = (trace for trace in nearer.data if trace.type == "scatter")
    assert weight.y == pytest.approx([1, np.exp(-2)])
    assert list(gap.x) == pytest.approx([0.5, 0.7])
    unset = pair_distances(histogram, (Mark("line", "both", float("nan"), "t", "threshold"),))
    assert len(unset.layout.shapes) == 0


def test_names_of_classes_are_no_markup():
    names = ("<b>a</b>", "a & b", "%{x}")
    figure = embedding_map(POSITIONS[:3, :2], np.array([0, 1, 2]), names)
    assert [trace.name for trace in figure.data] == ["&lt;b&gt;a&lt;/b&gt;", "a &amp; b", "%&#123;x}"]
    assert figure.data[2].hovertemplate.startswith("class %&#123;x}<br>")
    assert [row[0] for row in read(as_csv(figure))[1:]] == list(names)
