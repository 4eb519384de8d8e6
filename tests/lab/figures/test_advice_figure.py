"""The figure of an advice: what is drawn is what was found."""

import math

import pytest

from lab.advice import Advice
from lab.figures.advice import advice, is_geometric
from lab.figures.take_home import as_csv

FOUND = Advice(
    "neg_margin", "negative margin", "m", 0.2, 0.7, (0.0, 0.1, 0.2), (0.0, math.nan, 0.7), (0.02, 0.15)
)


def test_line_value_and_bands():
    figure = advice(FOUND)
    line, now = figure.data
    assert (list(line.x), list(line.y)) == ([0.0, 0.2], [0.0, 0.7])
    assert (list(now.x), list(now.y)) == ([0.2], [0.7])
    band, low, high = figure.layout.shapes
    assert (band.y0, band.y1) == (0.1, 0.6)
    assert (low.x0, high.x0) == (0.02, 0.15)
    assert as_csv(figure).splitlines()[1:] == ["share of pairs,0,0", "share of pairs,0.2,0.7", "now,0.2,0.7"]


def test_without_a_range_or_without_values():
    bare = advice(_without_range())
    assert len(bare.layout.shapes) == 1
    nothing = advice(Advice("neg_margin", "negative margin", "", 0.2, math.nan, (0.0,), (math.nan,), None))
    assert "No value of this option" in nothing.layout.annotations[0].text


def _without_range():
    return Advice("neg_margin", "negative margin", "m", 0.2, 0.7, (0.0, 0.2), (0.0, 0.7), None)


@pytest.mark.parametrize(
    ("values", "expected"),
    [((0.01, 0.1, 1.0), True), ((0.0, 0.5, 1.0), False), ((0.5, 1.0, 1.5), False), ((0.1, 1.0), False)],
)
def test_a_scale_by_factors_where_the_values_grow_so(values, expected):
    assert is_geometric(values) is expected
