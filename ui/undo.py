"""Taking back the last change on the Train page: a setting, or the run that took the place of another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from lab.config import LEARNING_RATE, live_options
from lab.settings import settings
from ui.page import ENTERED
from ui.session import SHOWN, change, present_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.scheduler import LiveRun

HISTORY, SEEN, QUIET = "undo.history", "undo.seen", "undo.quiet"
MOST = 50
ONE_TURN = 1.5  # seconds within which a slider's steps count as one change
FORMER = "the run before this one"


class Change(NamedTuple):
    """One thing that can be taken back.

    what: in words, as it follows "Takes back".
    before: values of the controls until then.
    run: whether a run took the place of another.
    key: of the control that changed.
    at: when, in seconds.
    """

    what: str
    before: dict[str, Any]
    run: bool = False
    key: str = ""
    at: float = 0.0


def note(found: Mapping[str, str]) -> None:
    """Called once all controls are drawn: remembers what changed since the script last ran.

    found: the settings of the controls; its keys are theirs.
    """
    now = {key: st.session_state[key] for key in found if key in st.session_state}
    seen = st.session_state.get(SEEN)
    st.session_state[SEEN] = now
    quiet = st.session_state.pop(QUIET, False)
    if seen is None or quiet:
        return
    changed = [key for key in seen if key in now and seen[key] != now[key]]
    if not changed:
        return
    if st.session_state.get(ENTERED):  # another link: what was changed before it is another story
        st.session_state[HISTORY] = []
        return
    key, history, when = changed[0], st.session_state.get(HISTORY, []), time.monotonic()
    last = history[-1] if history else None
    if last is not None and last.key == key and when - last.at < ONE_TURN:
        st.session_state[HISTORY] = [*history[:-1], last._replace(at=when)]
    else:
        push(Change(f"{title(key)} from {spelled(seen[key])}", seen, key=key, at=when))


def note_run(what: str) -> None:
    """A run took the place of another, which can be brought back; an earlier one cannot any more."""
    run = present_run()
    if run is None or not run.has_former:
        return
    st.session_state[HISTORY] = [one for one in st.session_state.get(HISTORY, []) if not one.run]
    push(Change(what, st.session_state.get(SEEN, {}), run=True))


def push(one: Change) -> None:
    """The newest change."""
    st.session_state[HISTORY] = [*st.session_state.get(HISTORY, []), one][-MOST:]


def title(key: str) -> str:
    """A control in words."""
    owner, _, name = key.rpartition(".")
    if not owner and name in settings():
        return settings()[name].title.lower()
    run = present_run()
    known = live_options(run.config.loss) if run is not None and run.config.loss == owner else {}
    return known[name].title.lower() if name in known else name.replace("_", " ")


def spelled(value: Any) -> str:
    """A value of a control."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def button(run: LiveRun) -> None:
    """Undo, which says what it takes back."""
    history = st.session_state.get(HISTORY, [])
    what = history[-1].what if history else FORMER if run.has_former else ""
    told = f"Takes back: {what}." if what else "Nothing was changed yet."
    if (history and history[-1].run) or (not history and run.has_former):
        told += " The former run comes back as it stood; the present one goes."
    elif what:
        told += " The run goes on: a knob is turned back from the next step on."
    st.button("Undo", key="undo", on_click=take_back, disabled=not what, help=told, shortcut="Ctrl+Z")


def take_back() -> None:
    """The last change, undone."""
    run, history = present_run(), list(st.session_state.get(HISTORY, []))
    last = history.pop() if history else Change(FORMER, {}, run=True)
    st.session_state[HISTORY] = history
    if run is None:
        return
    if last.run:
        run.bring_back()
        st.session_state[SHOWN] = None
    knobs = {LEARNING_RATE, *(f"{run.config.loss}.{name}" for name in live_options(run.config.loss))}
    for key, value in last.before.items():
        if st.session_state.get(key) != value:
            st.session_state[key] = value
            if key in knobs and not last.run:
                change(key)
    st.session_state[QUIET] = True
