"""The order of settings and their spread, against numbers worked out by hand."""

import math

import pytest

from lab.sweep.ranking import ranking, spread
from tests.lab.sweep.making import made


def test_settings_are_ranked_by_mean_recall_then_map():
    done = [
        made("a", 0, 0.80, 0.70),
        made("a", 1, 0.90, 0.60),
        made("b", 0, 0.95, 0.10),
        made("b", 1, 0.85, 0.30),
        made("c", 0, 0.80, 0.80),
        made("c", 1, 0.90, 0.60),
    ]
    ranked = ranking(done)
    assert [one.label for one in ranked] == ["learning rate b", "learning rate c", "learning rate a"]
    assert ranked[0].recall == pytest.approx((0.9, 0.85, 0.95))
    assert ranked[0].map_at_r == pytest.approx((0.2, 0.1, 0.3))
    assert ranked[1].map_at_r == pytest.approx((0.7, 0.6, 0.8))
    assert [cell.config.seed for cell, _ in ranked[0].cells] == [0, 1]


def test_a_lost_seed_enters_no_mean_and_puts_its_setting_behind():
    done = [
        made("good", 0, 0.99, 0.9),
        made("good", 1, 0.97, 0.9, "diverged"),
        made("poor", 0, 0.20, 0.1, "collapsed"),
        made("poor", 1, 0.30, 0.1),
        made("gone", 0, 0.50, 0.5, "failed"),
        made("gone", 1, 0.50, 0.5, "diverged"),
    ]
    ranked = ranking(done)
    assert [(one.label, one.lost, one.collapsed) for one in ranked] == [
        ("learning rate poor", 0, 1),
        ("learning rate good", 1, 0),
        ("learning rate gone", 2, 0),
    ]
    assert ranked[0].recall == pytest.approx((0.25, 0.2, 0.3))
    assert ranked[1].recall == (0.99, 0.99, 0.99)
    assert all(math.isnan(number) for number in ranked[2].recall)


def test_at_an_earlier_step_the_numbers_are_those_of_that_step():
    done = [made("a", 0, 0.9, 0.9), made("b", 0, 0.8, 0.8)]
    assert [one.recall.mean for one in ranking(done, step=9)] == [0.0, 0.0]
    assert ranking(done, step=10)[0].recall.mean == 0.9


def test_the_spread_leaves_out_what_is_not_finite():
    assert spread([0.1, math.nan, 0.4, math.inf]) == pytest.approx((0.25, 0.1, 0.4))
    assert all(math.isnan(number) for number in spread([math.nan]))
    assert ranking([]) == []
