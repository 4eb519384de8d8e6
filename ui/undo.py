"""Taking back, one by one, what was changed on the Train page, and doing it again: settings, whole runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from lab.config import LEARNING_RATE, live_options
from lab.titles import called
from losslib import catalog
from ui.left import ENTERED
from ui.session import SHOWN, change, present_run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lab.scheduler import LiveRun

HISTORY, UNDONE = "undo.history", "undo.undone"
SEEN, QUIET = "undo.seen", "undo.quiet"
MOST = 50
ONE_TURN = 1.5  # seconds within which a slider's steps count as one change
FORMER = "the run before this one"


class Change(NamedTuple):
    """One thing that can be taken back, or done again.

    what: in words, as it follows "Takes back".
    before: values of the controls until then; of one that was taken back, from then on.
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
        st.session_state[HISTORY] = st.session_state[UNDONE] = []
        return
    catch_up(changed)
    key, history, when = changed[0], st.session_state.get(HISTORY, []), time.monotonic()
    last = history[-1] if history else None
    if last is not None and last.key == key and when - last.at < ONE_TURN:
        st.session_state[HISTORY] = [*history[:-1], last._replace(at=when)]
        st.session_state[UNDONE] = []
    else:
        push(Change(f"{called(key)} from {spelled(key, seen[key])}", seen, key=key, at=when))


def catch_up(changed: list[str]) -> None:
    """The browser's Back and Forward turn knobs, too, and call nobody: the run takes what it has not yet."""
    run = present_run()
    for key in knobs(run) & {*changed} if run is not None else ():
        change(key)


def note_run(what: str) -> None:
    """A run took the place of another, which can be brought back."""
    run = present_run()
    if run is not None and run.formers:
        push(Change(what, st.session_state.get(SEEN, {}), run=True))
        st.session_state[HISTORY] = possible(st.session_state[HISTORY], run.formers)


def push(one: Change) -> None:
    """The newest change; what was taken back before it cannot be done again."""
    st.session_state[HISTORY] = [*st.session_state.get(HISTORY, []), one][-MOST:]
    st.session_state[UNDONE] = []


def possible(history: list[Change], runs: int) -> list[Change]:
    """The history without the oldest changes of a run, where no more than so many runs are kept."""
    gone = sum(one.run for one in history) - runs
    kept = []
    for one in history:
        if one.run and gone > 0:
            gone -= 1
        else:
            kept.append(one)
    return kept


def knobs(run: LiveRun) -> set[str]:
    """Keys of the controls that may turn while the run trains."""
    return {LEARNING_RATE, *(f"{run.config.loss}.{name}" for name in live_options(run.config.loss))}


def spelled(key: str, value: Any) -> str:
    """A value of a control."""
    if isinstance(value, float):
        return f"{value:g}"
    return catalog.get(value).title if key == "loss" else str(value)


def button(run: LiveRun) -> None:
    """Undo and Redo, which say what they do."""
    history = possible(st.session_state.get(HISTORY, []), run.formers)
    what = history[-1].what if history else FORMER if run.formers else ""
    told = f"Takes back: {what}." if what else "Nothing was changed yet."
    if (history and history[-1].run) or (not history and run.formers):
        told += " The former run comes back as it stood; Redo brings the present one back."
    elif what:
        told += " The run goes on: a knob is turned back from the next step on."
    st.button(
        "Undo", key="undo", on_click=take_back, disabled=not what, help=f"{told} Ctrl+Z.", shortcut="Ctrl+Z"
    )
    undone = possible(st.session_state.get(UNDONE, []), run.laters)
    again = f"Does again: {undone[-1].what}." if undone else "Nothing was taken back."
    keys = "Ctrl+Shift+Z"
    st.button(
        "Redo", key="redo", on_click=do_again, disabled=not undone, help=f"{again} {keys}.", shortcut=keys
    )


def take_back() -> None:
    """The last change, undone."""
    run, history = present_run(), list(st.session_state.get(HISTORY, []))
    if run is None:
        return
    history = possible(history, run.formers)
    last = history.pop() if history else Change(FORMER, {}, run=True)
    st.session_state[HISTORY] = history
    undone = last._replace(before=turned(run, last, run.bring_back))
    st.session_state[UNDONE] = [*st.session_state.get(UNDONE, []), undone]


def do_again() -> None:
    """The change that was taken back last, made again."""
    run, undone = present_run(), list(st.session_state.get(UNDONE, []))
    if run is None or not (undone := possible(undone, run.laters)):
        return
    last = undone.pop()
    st.session_state[UNDONE] = undone
    made = last._replace(before=turned(run, last, run.bring_forward), at=0.0)
    st.session_state[HISTORY] = [*st.session_state.get(HISTORY, []), made]


def turned(run: LiveRun, one: Change, exchange: Callable[[], None]) -> dict[str, Any]:
    """Gives controls and run what the change holds; returns what the controls had."""
    had = {key: st.session_state.get(key) for key in one.before}
    if one.run:
        exchange()
        st.session_state[SHOWN] = None
    live = knobs(run)
    for key, value in one.before.items():
        if st.session_state.get(key) != value:
            st.session_state[key] = value
            if key in live and not one.run:
                change(key)
    st.session_state[QUIET] = True
    return had
