"""The part of the link that panels write in the browser: what the server knows of it, and until when."""

import json

import pytest
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.testing.v1 import AppTest

from tests.ui.opening import component, opened_at
from tests.ui.test_compare import replay
from tests.ui.test_playground import TRIPLET, board
from ui import reports

PLACED = "1~0~1_0~1~1_-1~0~2"


def script():
    import streamlit as st

    from ui import address

    if (texts := st.session_state.pop("hold", None)) is not None:
        address.hold(texts)
    if st.session_state.pop("forget", False):
        address.forget()
    st.session_state["seen"] = address.link()
    st.session_state["step"] = address.text("page.step", "none")


@pytest.fixture
def at():
    return AppTest.from_function(script, default_timeout=30)


def seen(at, query=None, **state):
    """The link as the server takes it, after the address has become this one."""
    for key, value in state.items():
        at.session_state[key] = value
    if query is not None:
        at.query_params.clear()
        for key, value in query.items():
            at.query_params[key] = value
    at.run()
    assert not at.exception
    return at.session_state["seen"]


def test_what_a_panel_told_is_in_the_link_before_streamlit_hears_of_it(at):
    former = {"page.data": ["blobs"], "page.losses": ["A", "B"]}
    assert seen(at, former) == former
    assert at.session_state["step"] == "none"
    assert seen(at, hold={"page.step": "100", "page.rate": ""}) == {**former, "page.step": ["100"]}
    assert at.session_state["step"] == "100"
    assert "page.step" not in at.query_params, "the script wrote nothing: that would undo a control's turn"
    assert seen(at, {**former, "page.dim": "3"})["page.step"] == ["100"], "a control was turned"
    heard = {**former, "page.dim": ["3"], "page.step": ["100"]}
    assert seen(at, heard) == heard


def test_a_panel_back_at_its_default_is_out_of_the_link(at):
    assert seen(at, {"page.step": "5"}) == {"page.step": ["5"]}
    assert seen(at, hold={"page.step": ""}) == {}
    assert at.session_state["step"] == "none"


def test_a_later_link_and_another_page_win_over_what_was_told(at):
    assert seen(at, {"page.step": "5"}, hold={"page.step": "100"}) == {"page.step": ["100"]}
    assert seen(at, {"page.step": "7"}) == {"page.step": ["7"]}
    assert seen(at, {}, hold={"page.step": "100"}) == {"page.step": ["100"]}
    assert seen(at, forget=True) == {}


def sent(at, trigger="", **values):
    """The page runs as when the component in its browser sends a state, or a trigger."""
    states, one = at._tree.get_widget_states(), component(at).id
    if trigger:
        told = [{"event": trigger, "value": values[trigger]}]
        states.widgets.add(id=_make_trigger_id(one, "events"), json_trigger_value=json.dumps(told))
    else:
        states.widgets.add(id=one, json_value=json.dumps(values))
    return at._run(states)


def entered_anew(at, page):
    """Another page was looked at, and then this one was opened without a link."""
    for name in ("home.py", f"pages/{page}.py"):
        at.switch_page(name)
        at.query_params.clear()
        at.run()
    assert not at.exception
    return at


def test_a_step_at_rest_is_in_the_report_s_link_and_comes_back(monkeypatch):
    links = []
    monkeypatch.setattr(reports, "comparison_button", lambda *_: links.append(reports.address()))
    at = opened_at("compare", {})
    assert "compare.step" not in links[-1]
    sent(at, "rest", rest="100")
    assert "compare.step=100" in links[-1]
    assert replay(entered_anew(at, "compare"))[0] == 100
    assert at.query_params["compare.step"] == "100"
    sent(at, "rest", rest="300")  # the last step, which is the default
    assert "compare.step" not in links[-1]
    assert replay(entered_anew(at, "compare"))[0] == 300


def test_points_at_rest_come_back_and_a_link_wins_over_them():
    at = opened_at("playground", {"playground.rate": "1"})
    assert (board(at)["points"], board(at)["rate"]) == (TRIPLET, "1")
    sent(at, told={"points": PLACED, "rate": "0.1", "follow": "", "selected": "B"})
    given = board(at)
    assert (given["points"], given["rate"], given["selected"]) == (PLACED, "0.1", "B")
    given = board(entered_anew(at, "playground"))
    assert (given["points"], given["rate"], given["selected"]) == (PLACED, "0.1", "B")
    assert at.query_params["playground.points"] == PLACED
    assert "playground.rate" not in at.query_params, "the default"
    at.switch_page("home.py").run()
    at.switch_page("pages/playground.py")
    at.query_params.clear()
    at.query_params["playground.rate"] = "3"
    given = board(at.run())
    assert (given["points"], given["rate"], given["selected"]) == (TRIPLET, "3", "A")
