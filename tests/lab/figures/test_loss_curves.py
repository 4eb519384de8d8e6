"""The figure of a loss's curves on a normal, a one-point and an empty input."""

import numpy as np

from lab.curves import Curve, LossCurves
from lab.figures.loss_curves import loss_curves
from lab.figures.palette import NEGATIVE, POSITIVE
from losslib.types import Mark


def curve(side, at, dead=()):
    at = np.array(at, dtype=float)
    return Curve(side, at, at + 1, -at, dead)


def test_value_stands_over_gradient_and_dead_zones_are_shaded_in_their_colour():
    given = (curve("positive", [0, 1, 2], ((0.0, 0.5),)), curve("negative", [0, 1, 2], ((1.5, 2.0),)))
    marks = (Mark("line", "negative", 1.5, "m", "margin"),)
    figure = loss_curves(LossCurves("Euclidean distance", False, given, "held.", True, marks))
    assert [(trace.name, trace.yaxis, trace.y.tolist()) for trace in figure.data] == [
        ("positive pair", "y", [1, 2, 3]),
        ("positive pair", "y2", [0, -1, -2]),
        ("negative pair", "y", [1, 2, 3]),
        ("negative pair", "y2", [0, -1, -2]),
    ]
    assert [trace.showlegend for trace in figure.data] == [True, False, True, False]
    assert len({trace.line.dash for trace in figure.data}) == 2, "colour is not the only difference"
    zones = {(shape.x0, shape.x1, shape.fillcolor) for shape in figure.layout.shapes if shape.type == "rect"}
    assert zones == {(0.0, 0.5, POSITIVE), (1.5, 2.0, NEGATIVE)}
    assert {shape.x0 for shape in figure.layout.shapes if shape.type == "line"} == {1.5}
    assert figure.layout.xaxis2.title.text == "Euclidean distance<br>(smaller is closer)"


def test_a_similarity_says_that_larger_is_closer():
    figure = loss_curves(LossCurves("Cosine similarity", True, (curve("positive", [0, 1]),), "held.", False))
    assert figure.layout.xaxis2.title.text == "Cosine similarity<br>(larger is closer)"


def test_a_long_name_of_an_axis_stands_on_two_lines():
    axis = "Squared Euclidean distance of normalised embeddings"
    figure = loss_curves(LossCurves(axis, False, (curve("positive", [0, 1]),), "held.", False))
    lines = figure.layout.xaxis2.title.text.split("<br>")
    assert lines == ["Squared Euclidean distance", "of normalised embeddings", "(smaller is closer)"]


def test_one_point_is_a_marker():
    figure = loss_curves(LossCurves("distance", False, (curve("positive", [1]),), "held.", True))
    assert {trace.mode for trace in figure.data} == {"markers"}


def test_no_curve_is_a_sentence():
    figure = loss_curves(LossCurves("distance", False, (), "There is no curve.", True))
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text == "There is no curve."
