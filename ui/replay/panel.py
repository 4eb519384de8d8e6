"""The replay as one component: its markup, style and code are read from `client/` and passed inline."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from ui import address
from ui.live.panel import CLIENT as LIVE_CLIENT
from ui.replay.packet import packet

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.compare.duel import Contender

CLIENT = Path(__file__).with_name("client")
SHARED = (  # of the live panel
    "2_theme.js",
    "3_legend.js",
    "3_map.js",
    "4_histogram.js",
    "4_medians.js",
    "4_tween.js",
    "5_curves.js",
)
KEY = "compare replay"


@cache
def script() -> str:
    """The client's files in order of their numbers, as one module."""
    markup = (CLIENT / "replay.html").read_text(encoding="utf-8")
    files = [address.SCRIPT, *(LIVE_CLIENT / name for name in SHARED), *sorted(CLIENT.glob("[0-9]_*.js"))]
    return "\n".join(
        [f"const MARKUP = {json.dumps(markup)};", *(f.read_text(encoding="utf-8") for f in files)]
    )


@cache
def style() -> str:
    """The client's style sheets, as one."""
    files = (LIVE_CLIENT / "panel.css", CLIENT / "replay.css")
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


_COMPONENT = st.components.v2.component("losslab_replay", js=script(), css=style())


def replay(
    sides: tuple[Contender, ...], titles: tuple[str, ...], start: int, on_rest: Callable[[int], None]
) -> None:
    """Draws maps, numbers, distances and curves of all runs under one slider.

    Args:
        sides: of the comparison; all have a frame.
        titles: their names.
        start: a shared step, where a replay that is drawn for the first time begins.
        on_rest: gets the step of the slider once it has stood still.
    """

    def rest() -> None:
        told = str(st.session_state[KEY].get("rest", ""))
        if told.isdecimal():
            on_rest(int(told))

    _COMPONENT(key=KEY, data=start.to_bytes(4, "little") + packet(sides, titles), on_rest_change=rest)
