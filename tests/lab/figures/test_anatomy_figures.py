"""The anatomy's figures: the rug, the slid pair, the family of curves and the force portrait."""

import numpy as np
import pytest

from lab.anatomy.batch import Rug
from lab.anatomy.family import Family, Member
from lab.anatomy.portrait import Portrait
from lab.anatomy.slides import Along
from lab.curves import Curve, LossCurves
from lab.figures.force_portrait import EVERY, LONGEST, force_portrait
from lab.figures.loss_curves import loss_curves
from lab.figures.loss_family import loss_family
from lab.figures.palette import NEGATIVE, POSITIVE
from losslib.params import Param, finite
from losslib.types import Mark

AT = np.array([0.0, 1.0, 2.0])


def curve(side, start=None):
    return Curve(side, AT, AT + 1, -AT, (), start)


def test_the_rug_stands_under_both_curves_with_a_row_a_side():
    rug = Rug(np.array([0.5, 0.7]), np.array([1.5]), "ticks.")
    marks = (Mark("line", "negative", 1.5, "m", "negative margin"),)
    given = LossCurves("distance", False, (curve("positive"), curve("negative")), "held.", True, marks, rug)
    figure = loss_curves(given)
    ticks = [trace for trace in figure.data if trace.yaxis == "y3"]
    assert [(t.x.tolist(), set(t.y), t.marker.line.color) for t in ticks] == [
        ([0.5, 0.7], {"positive"}, POSITIVE),
        ([1.5], {"negative"}, NEGATIVE),
    ]
    assert {trace.marker.symbol for trace in ticks} == {"line-ns"}
    assert [note.text for note in figure.layout.annotations] == ["negative margin"]
    assert figure.layout.xaxis3.title.text == "distance<br>(smaller is closer)"


def test_the_slid_pair_and_the_own_place_are_marked_on_value_and_gradient():
    given = LossCurves("distance", False, (curve("positive", start=0.5),), "held.", True)
    here = {"positive": Along(np.array([1.5]), np.array([2.5]), np.array([-1.5]))}
    figure = loss_curves(given, here)
    marked = {trace.name: (trace.x[0], trace.y[0]) for trace in figure.data if trace.mode == "markers"}
    assert marked == {
        "slid positive pair: loss": (1.5, 2.5),
        "slid positive pair: gradient": (1.5, -1.5),
        "the positive pair's own place in the batch: loss": (0.5, 1.5),
        "the positive pair's own place in the batch: gradient": (0.5, -0.5),
    }


def members(*values, current):
    return tuple(
        Member(
            v, f"{v:g}", v == current, {s: Along(AT, v * AT + 5, v * AT) for s in ("positive", "negative")}
        )
        for v in values
    )


def test_a_family_emphasises_the_current_value_in_a_scale_that_grows_lighter():
    param = Param(1.0, finite, name="margin", title="Margin")
    given = Family(param, "similarity", True, members(0.0, 0.5, 1.0, current=0.5), ())
    figure = loss_family(given, "rise of the loss")
    first = [trace for trace in figure.data if trace.showlegend]
    assert [trace.name for trace in first] == ["0", "0.5 (current)", "1"]
    assert [trace.line.width for trace in first] == [1.8, 4, 1.8]
    assert all(first[1].zorder < trace.zorder for trace in (first[0], first[2])), "the wide line hides none"
    assert first[2].y.tolist() == [0, 1, 2]
    assert [trace.line.dash == "solid" for trace in first] == [False, True, False]
    assert loss_family(given, "loss").data[0].y.tolist() == [5, 5, 5]
    assert figure.layout.legend.title.text == "Margin"
    assert figure.layout.xaxis2.title.text == "similarity<br>(larger is closer)"

    def light(colour):
        red, green, blue = map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))
        return 0.3 * red + 0.59 * green + 0.11 * blue

    for dark in (False, True):
        lights = [light(t.line.color) for t in loss_family(given, "loss", dark).data if t.showlegend]
        assert lights == sorted(lights)
        assert lights[0] > 80 if dark else lights[-1] < 190, "readable on its ground"


def test_a_family_of_nothing_is_a_sentence():
    param = Param(1.0, finite, name="margin")
    figure = loss_family(Family(param, "distance", False, (), ()))
    assert len(figure.data) == 0
    assert "refuses every value" in [note.text for note in figure.layout.annotations][-1]


def drawn(force, circle=0):
    axis = np.linspace(-1.5, 1.5, 5)
    angles = np.linspace(0, 2 * np.pi, circle, endpoint=False)
    held = np.array([[1.0, 0.0], [0.0, 1.0]])
    labels = np.array([0, 1])
    ring = np.stack([-np.sin(angles), np.cos(angles)], 1)
    value = np.arange(25.0).reshape(5, 5)
    return Portrait(axis, value, force, held, labels, 1, angles, angles, ring, "held.", "distance")


@pytest.mark.parametrize("dark", [False, True])
def test_arrows_follow_the_force_and_dots_mark_where_none_is(dark):
    force = np.zeros((5, 5, 2))
    force[0, 0] = (3.0, 0.0)
    force[2, 2] = (0.0, -1.5)
    figure = force_portrait(drawn(force), dark)
    [heat] = [trace for trace in figure.data if trace.type == "heatmap"]
    assert heat.z.tolist() == np.arange(25.0).reshape(5, 5).tolist()
    [arrows] = [trace for trace in figure.data if trace.name == "force"]
    tips = np.stack([arrows.x, arrows.y], 1).reshape(-1, 7, 2)[:, 1]
    starts = np.stack([arrows.x, arrows.y], 1).reshape(-1, 7, 2)[:, 0]
    np.testing.assert_allclose(starts, [[-1.5, -1.5], [0, 0]])
    np.testing.assert_allclose((tips - starts)[0], [LONGEST, 0])
    assert (tips - starts)[1][1] < -0.12 * LONGEST
    [dots] = [trace for trace in figure.data if trace.name == "no force"]
    assert len(dots.x) == len(range(0, 5, EVERY)) ** 2 - 2
    assert {"class A", "B, own class", "class C"} <= {trace.name for trace in figure.data}


def test_on_the_circle_arrows_are_bolder_than_on_the_plane():
    figure = force_portrait(drawn(np.ones((5, 5, 2)), circle=8))
    widths = {trace.name: trace.line.width for trace in figure.data if "force" in trace.name}
    assert widths["force on the circle"] > 2 * widths["force"]
    [circle] = figure.layout.shapes
    assert (circle.type, circle.x0, circle.x1) == ("circle", -1, 1)
    ring = next(trace for trace in figure.data if trace.name == "force on the circle")
    assert len(ring.x) == 8 * 7


def test_a_value_that_is_no_number_leaves_a_gap():
    force = np.full((5, 5, 2), np.nan)
    figure = force_portrait(drawn(force))
    [arrows] = [trace for trace in figure.data if trace.name == "force"]
    assert len(arrows.x) == 0
