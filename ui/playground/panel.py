"""The board as one component: its markup, style and code are read from `client/` and passed inline."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from losslib.errors import ParameterError
from ui import address
from ui.live.panel import CLIENT as LIVE_CLIENT
from ui.playground.route import checked_setup, path, worker

if TYPE_CHECKING:
    from collections.abc import Callable

CLIENT = Path(__file__).with_name("client")
SHARED = ("2_theme.js", "7_socket.js")  # of the live panel
KEY = "playground board"
FALLBACK, ASKED = "playground fallback", "playground asked"


@cache
def script() -> str:
    """The client's files in order of their numbers, as one module."""
    markup = (CLIENT / "board.html").read_text(encoding="utf-8")
    files = [address.SCRIPT, *(LIVE_CLIENT / name for name in SHARED), *sorted(CLIENT.glob("[0-9]_*.js"))]
    return "\n".join(
        [f"const MARKUP = {json.dumps(markup)};", *(f.read_text(encoding="utf-8") for f in files)]
    )


@cache
def style() -> str:
    """The client's style sheet."""
    return (CLIENT / "board.css").read_text(encoding="utf-8")


_COMPONENT = st.components.v2.component("losslab_playground", js=script(), css=style())


def board(data: dict[str, Any], on_told: Callable[[dict[str, Any]], None]) -> None:
    """Draws the board.

    Args:
        data: the setup, where to begin, and what is said of each loss.
        on_told: called with the state at rest, {"points", "rate", "follow", "selected"}.
    """

    def told() -> None:
        on_told(dict(st.session_state[KEY].get("told") or {}))

    def fall_back() -> None:
        st.session_state[FALLBACK] = True

    def asked() -> None:
        st.session_state[ASKED] = st.session_state[KEY].get("ask")

    events: dict[str, Any] = {"on_told_change": told, "on_fallback_change": fall_back, "on_ask_change": asked}
    if st.session_state.get(FALLBACK):
        st.fragment(_answered)(data, events)
    else:
        _draw({**data, "path": path()}, events)


def _answered(data: dict[str, Any], events: dict[str, Any]) -> None:
    """The slow way, where no socket can be opened: questions and answers through the script."""
    question = st.session_state.get(ASKED)
    found = answer_to(data["setup"], question) if isinstance(question, dict) else None
    _draw({**data, "answer": found}, events)


def _draw(data: dict[str, Any], events: dict[str, Any]) -> None:
    # In a list: of a dictionary Streamlit asks pandas about every value, which then takes 60 MB for nothing.
    _COMPONENT(key=KEY, data=[data], **events)


def answer_to(setup: dict[str, Any], question: dict[str, Any]) -> dict[str, Any] | None:
    """The answer to a message, as over the socket; None for a wrong one."""
    from lab.playground.answers import answer

    def found() -> dict[str, Any]:
        return answer(checked_setup(setup), question)

    try:
        return worker().submit(found).result(timeout=20)
    except (ParameterError, TimeoutError):
        return None
