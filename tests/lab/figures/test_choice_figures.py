"""The figures of Compare and Sweep: what is drawn, and that empty and single inputs are said, not broken."""

import math

import numpy as np
import pytest

from lab.compare.measures import Measure
from lab.compare.moved import moved
from lab.figures.compared_curves import compared_curves
from lab.figures.compared_distances import compared_distances
from lab.figures.compared_maps import compared_maps
from lab.figures.moved_points import moved_points
from lab.figures.palette import COLOURS
from lab.figures.sweep_ranking import broken, sweep_ranking
from lab.frame import Histogram
from lab.sweep.ranking import ranking
from losslib.types import Mark
from tests.lab.sweep.making import made

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
CLASSES, NAMES = np.array([0, 1, 1]), ("zero", "one", "never")
RECALL = Measure("recall_at_1", "recall@1", "higher", "perfect is 1", True)
RANK = Measure("effective_rank", "effective rank", "", "1: on a line")
NO_POINTS = np.zeros((0, 2))
RANKED = ranking([made("a", 0, 0.5, 0.4)])


def test_each_run_has_a_map_and_a_class_one_look_in_all():
    figure = compared_maps([POINTS, 2 * POINTS], CLASSES, NAMES, ("A", "B"), np.array([7, 8, 9]))
    assert [trace.name for trace in figure.data] == ["zero", "one"] * 2
    assert [trace.showlegend for trace in figure.data] == [True, True, False, False]
    assert figure.data[1].marker.color == figure.data[3].marker.color == COLOURS[1]
    assert figure.data[3].x.tolist() == [2.0, 0.0]
    assert figure.data[1].customdata.tolist() == [8, 9]
    assert [note.text for note in figure.layout.annotations] == ["A", "B"]
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis2.scaleanchor) == ("x", "x2")


def test_curves_of_all_runs_lie_over_each_other_with_the_step():
    steps = np.array([0.0, 5.0, 9.0])
    curves = [
        {"step": steps, "recall_at_1": np.array([0.1, math.nan, 0.9]), "effective_rank": np.ones(3)},
        {"step": steps, "recall_at_1": np.array([0.2, 0.3, 0.4]), "effective_rank": np.full(3, math.nan)},
    ]
    figure = compared_curves(curves, ("A", "B"), (RECALL, RANK), step=5)
    assert [(trace.name, trace.xaxis, list(trace.x)) for trace in figure.data] == [
        ("A", "x", [0.0, 9.0]),
        ("B", "x", [0.0, 5.0, 9.0]),
        ("A", "x2", [0.0, 5.0, 9.0]),
    ]
    assert figure.data[0].line.dash != figure.data[1].line.dash
    assert [(line.x0, line.xref, line.yref) for line in figure.layout.shapes] == [
        (5, "x", "y domain"),
        (5, "x2", "y2 domain"),
    ]
    assert "higher is better" in figure.layout.annotations[0].text


def test_distances_are_shares_on_each_axis_with_the_thresholds():
    first = Histogram(0.0, 2.0, np.array([3, 1]), np.array([0, 4]))
    second = Histogram(-1.0, 1.0, np.array([0, 0]), np.array([1, 1]))
    marks = [(Mark("line", "negative", 1.5, "m", "margin"), Mark("gap", "both", 0.2, "m", "gap")), ()]
    figure = compared_distances([first, second], ("A", "B"), ("smaller is closer", "larger is closer"), marks)
    assert [list(trace.y) for trace in figure.data] == [[0.75, 0.25], [0.0, 1.0], [0.5, 0.5]]
    assert [trace.xaxis for trace in figure.data] == ["x", "x", "x2"]
    assert list(figure.data[0].x) == [0.5, 1.5]
    assert [line.x0 for line in figure.layout.shapes] == [1.5]
    assert figure.layout.xaxis2.title.text == "larger is closer"


def test_movers_are_numbered_lines_from_first_to_second_place():
    second = POINTS + np.array([[0.0, 0.0], [0.0, 3.0], [0.5, 0.0]])
    found = moved(POINTS, second, CLASSES, np.array([7, 8, 9]), most=2)
    figure = moved_points(POINTS, second, found, NAMES, ("A", "B"))
    assert [trace.name for trace in figure.data[:2]] == ["A", "B"]
    lines = figure.data[2:]
    assert [tuple(line.text) for line in lines] == [("", "1"), ("", "2")]
    assert (list(lines[0].x), list(lines[0].y)) == ([1.0, 1.0], [0.0, 3.0])
    assert "class one, sample 8" in lines[0].hovertemplate


def test_the_best_setting_is_on_top_with_its_spread():
    done = [
        made("a", 0, 0.5, 0.4),
        made("b", 0, 0.8, 0.7),
        made("b", 1, 0.9, 0.6),
        made("c", 0, 0, 0, "failed"),
    ]
    figure = sweep_ranking(ranking(done), chance=0.1)
    recall, map_at_r = figure.data
    assert list(recall.y) == ["learning rate b", "learning rate a"]
    assert list(recall.x) == pytest.approx([0.85, 0.5])
    assert list(recall.error_x.array) == pytest.approx([0.05, 0.0])
    assert list(recall.error_x.arrayminus) == pytest.approx([0.05, 0.0])
    assert map_at_r.name == "MAP@R"
    assert list(map_at_r.x) == pytest.approx([0.65, 0.4])
    assert figure.layout.yaxis.categoryarray == (
        "learning rate c",
        "learning rate a",
        "learning rate b",
    )  # Plotly draws from below
    assert figure.layout.shapes[0].x0 == 0.1


def test_settings_of_many_words_stand_in_lines_and_have_the_room():
    label = "Generalized lifted structure, negative margin 0.5, learning rate 0.01, batch size 64"
    lines = broken(label).replace("\u00a0", " ").split("<br>")
    assert " ".join(lines) == label
    assert lines == [
        "Generalized lifted structure,",
        "negative margin 0.5,",
        "learning rate 0.01,",
        "batch size 64",
    ]
    assert broken("Contrastive, margin 2").replace("\u00a0", " ") == "Contrastive, margin 2"
    short, long = (sweep_ranking([one._replace(label=label) for one in RANKED]) for label in ("a, b", label))
    assert long.layout.yaxis.ticktext == (broken(label),)
    assert long.layout.yaxis.tickvals == long.layout.yaxis.categoryarray == (label,)
    assert long.layout.height - short.layout.height == 4 * 16 + 2 - 34


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (compared_maps([], CLASSES[:0], NAMES, ()), "no points"),
        (compared_maps([NO_POINTS], CLASSES[:0], NAMES, ("A",)), "no points"),
        (compared_curves([], (), (RECALL,)), "no steps"),
        (compared_distances([], (), ()), "no pairs"),
        (compared_distances([Histogram(0, 1, np.zeros(0), np.zeros(0))], ("A",), ("",)), "no pairs"),
        (moved_points(NO_POINTS, NO_POINTS, (), NAMES), "no points"),
        (sweep_ranking([]), "No run has ended"),
        (sweep_ranking(ranking([made("a", 0, 0, 0, "failed")])), "No run has ended"),
    ],
)
def test_nothing_to_show_is_said(figure, words):
    assert not figure.data
    assert any(words in note.text for note in figure.layout.annotations)


def test_one_point_and_one_step_are_drawn():
    assert len(compared_maps([POINTS[:1]], CLASSES[:1], NAMES, ("A",)).data) == 1
    one = {"step": np.zeros(1), "recall_at_1": np.ones(1)}
    assert compared_curves([one], ("A",), (RECALL,)).data[0].mode == "markers"
    assert len(moved_points(POINTS[:1], POINTS[:1], (), NAMES).data) == 2
