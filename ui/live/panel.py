"""The live panel as one component: its markup, style and code are read from `client/` and passed inline."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from ui.live.feed import OLDER_FRAMES, Feed
from ui.live.route import path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lab.scheduler import LiveRun

CLIENT = Path(__file__).with_name("client")
KEY = "live panel"
FALLBACK = "live.fallback"
TICKS = "live.ticks"
FALLBACK_SECONDS = 0.5


@cache
def script() -> str:
    """The client's files in order of their numbers, as one module."""
    markup = (CLIENT / "panel.html").read_text(encoding="utf-8")
    files = sorted(CLIENT.glob("[0-9]_*.js"))
    return "\n".join(
        [f"const MARKUP = {json.dumps(markup)};", *(f.read_text(encoding="utf-8") for f in files)]
    )


@cache
def style() -> str:
    """The client's style sheets, as one."""
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted(CLIENT.glob("*.css")))


_COMPONENT = st.components.v2.component("losslab_live_panel", js=script(), css=style())


def live_panel(
    run: LiveRun,
    show: int | None = None,
    step: int | None = None,
    *,
    on_adopt: Callable[[str], None],
    on_lost: Callable[[str], None],
    on_command: Callable[[str], None],
    on_moment: Callable[[str], None],
    store: str = "losslab.run",
    allowed: Sequence[str] | None = None,
) -> None:
    """Draws the panel of a run.

    Args:
        run: what is shown.
        show: the step a panel that is drawn for the first time shows; None for the newest.
        step: the step in view, as the page knows it; None while the run trains.
        on_adopt: gets the token of the run the tab had before a reload, and a space and the step shown.
        on_lost: gets the token of a run the server no longer has.
        on_command: gets the name of a command.
        on_moment: gets the step scrubbed to, or "newest", whenever the run stands still.
        store: under which name the browser tab remembers its run over a reload; one a page.
        allowed: commands that the panel's keys give; None for all of them.
    """

    def told(name: str, callback: Callable[[str], None]) -> Callable[[], None]:
        def tell() -> None:
            if KEY in st.session_state:  # what comes after the page was left has nobody to tell
                callback(str(st.session_state[KEY].get(name, "")))

        return tell

    def fall_back() -> None:
        st.session_state[FALLBACK] = True

    events: dict[str, Any] = {
        "on_adopt_change": told("adopt", on_adopt),
        "on_lost_change": told("lost", on_lost),
        "on_command_change": told("command", on_command),
        "on_moment_change": told("moment", on_moment),
        "on_fallback_change": fall_back,
    }
    if st.session_state.get(FALLBACK):
        st.fragment(_from_script, run_every=FALLBACK_SECONDS)(run, events)
    else:
        data = {
            "token": run.token,
            "path": path_of(run.token),
            "store": store,
            "show": show,
            "step": step,
            "allowed": None if allowed is None else list(allowed),
        }
        _COMPONENT(key=KEY, data=data, **events)


def _from_script(run: LiveRun, events: dict[str, Any]) -> None:
    """The slow way, where no socket can be opened: the same packets as data of the component.

    The component may have been mounted anew, so each packet starts with all that does not change.
    """
    # Each packet carries another part of the history, until the whole of it is there.
    ticks = st.session_state.get(TICKS, 0)
    st.session_state[TICKS] = ticks + 1
    feed = Feed(run, images=False, skip=ticks * OLDER_FRAMES)
    run.attach(KEY + run.token)
    _COMPONENT(key=KEY, data=feed.packet(), **events)
