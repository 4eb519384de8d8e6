"""Controls made from declarations: the right kind, the link's value, both ends, and what is refused."""

import pytest
from streamlit.testing.v1 import AppTest

from losslib.params import Choice, Integer, Optional, Param, boolean, finite, positive
from ui.controls import help_text, is_logarithmic, nice_step

PARAMS = {
    "margin": Param(1.0, valid=finite, explore=(0.0, 2.0), name="margin", symbol="m", meaning="the margin"),
    "tau": Param(0.07, valid=positive, explore=(0.01, 1.0), name="tau"),
    "lr": Param(0.003, valid=positive, name="lr"),
    "rows": Param(8, valid=Integer(2, 64), explore=(2, 32), name="rows", step=2),
    "dim": Param(2, valid=Integer(2, 512), explore=(2, 3, 8, 32), name="dim"),
    "kind": Param("a", valid=Choice("a", "b"), name="kind"),
    "swap": Param(False, valid=boolean, name="swap"),
    "limit": Param(None, valid=Optional(positive), name="limit"),
}


def draw_all():
    import streamlit as st

    from tests.ui.test_controls import PARAMS
    from ui.controls import control

    for name, param in PARAMS.items():
        st.text(f"{name}={control(param, f'X.{name}')}")


def opened(**query):
    at = AppTest.from_function(draw_all, default_timeout=30)
    for key, value in query.items():
        at.query_params[f"X.{key}"] = value
    at.run()
    assert not at.exception
    return at


def shown(at):
    return dict(text.value.split("=", 1) for text in at.text)


def test_defaults_are_spelt_as_the_link_spells_them():
    assert shown(opened()) == {
        "margin": "1",
        "tau": "0.07",
        "lr": "0.003",
        "rows": "8",
        "dim": "2",
        "kind": "a",
        "swap": "false",
        "limit": "none",
    }


def test_each_kind_gets_its_control():
    at = opened()
    kinds = {name: type(at.get_by_key(f"X.{name}")).__name__ for name in PARAMS}
    assert kinds == {
        "margin": "Slider",
        "tau": "SelectSlider",
        "lr": "NumberInput",
        "rows": "NumberInput",
        "dim": "Selectbox",
        "kind": "Selectbox",
        "swap": "Toggle",
        "limit": "TextInput",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("margin", "0.8"),
        ("margin", "5"),  # beyond the range worth exploring, but valid
        ("margin", "-1.25"),
        ("tau", "0.123"),  # between the slider's stops
        ("tau", "50"),
        ("tau", "1e+06"),
        ("lr", "0.5"),
        ("rows", "64"),
        ("dim", "5"),  # not among the usual ones
        ("kind", "b"),
        ("swap", "true"),
        ("limit", "2.5"),
    ],
)
def test_a_linked_value_reaches_the_control(name, text):
    assert shown(opened(**{name: text}))[name] == text


@pytest.mark.parametrize(
    ("name", "text", "spelt"), [("tau", "1000000", "1e+06"), ("tau", "0.50", "0.5"), ("dim", "08", "8")]
)
def test_another_spelling_of_a_choice_reaches_the_control(name, text, spelt):
    assert shown(opened(**{name: text}))[name] == spelt


def test_a_wide_slider_keeps_its_ends_when_other_controls_move():
    at = opened(margin="5")
    at.get_by_key("X.rows").set_value(32).run()
    assert shown(at)["margin"] == "5"
    assert at.get_by_key("X.margin").max == 5.0
    at.get_by_key("X.margin").set_value(0.5).run()
    assert shown(at)["margin"] == "0.5"
    assert at.get_by_key("X.margin").max == 5.0


def test_text_that_means_nothing_is_refused_in_a_sentence():
    at = opened()
    at.get_by_key("X.limit").set_value("-3").run()
    assert shown(at)["limit"] == "none"
    assert "must be a number > 0" in at.error[0].value


def test_help_says_what_it_is_its_symbol_and_what_is_accepted():
    param = Param(
        1, valid=Integer(1, 9), name="n", symbol="k", meaning="number of neighbours", larger="smooths"
    )
    assert help_text(param) == (
        "Number of neighbours. Symbol: $k$. A larger value smooths. Accepts a whole number from 1 to 9."
    )


def test_ranges_over_many_sizes_are_logarithmic():
    assert is_logarithmic(PARAMS["tau"])
    assert not is_logarithmic(PARAMS["margin"])
    assert not is_logarithmic(PARAMS["rows"])


@pytest.mark.parametrize(("low", "high", "step"), [(0, 2, 0.02), (0, 1, 0.01), (0, 3, 0.05), (0, 100, 1)])
def test_steps_are_round(low, high, step):
    assert nice_step(low, high) == pytest.approx(step)


def test_an_absurd_linked_value_gets_a_field_and_keeps_it():
    at = opened(margin="1e6")
    assert shown(at)["margin"] == "1e+06"
    assert type(at.get_by_key("X.margin")).__name__ == "NumberInput"
    at.get_by_key("X.margin").set_value(0.5).run()
    assert shown(at)["margin"] == "0.5"
    assert (
        type(opened(margin="30").get_by_key("X.margin")).__name__ == "Slider"
    )  # 15 times as wide: still of use
