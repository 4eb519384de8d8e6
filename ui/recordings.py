"""Runs that outlive the page: saved to a file, opened from one, and continued from one of their frames."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.config import LEARNING_RATE, RunConfig, in_force, live_options
from lab.links import EVENTS
from lab.opened import MAX_FILE, as_file, file_name, open_run
from lab.settings import sentence
from lab.titles import declaration
from losslib.errors import ParameterError
from ui import undo
from ui.link import PRESET
from ui.session import SHOWN, act, basis, present_run, restart, shown_step, told

if TYPE_CHECKING:
    from lab.recording import Recording
    from lab.scheduler import LiveRun

OPENED, ARRIVES, TURN = "recordings.opened", "recordings.arrives", "recordings.turn"
RESTING = ("ready", "paused", "finished", "diverged", "recorded")


def continue_button(run: LiveRun, wanted: RunConfig) -> None:
    """Continue from here: active once a run that stands still is scrubbed to a frame before its last."""
    step = shown_step(run)
    latest = run.recording.latest if run.recording is not None else None
    last = 0 if latest is None else latest.step
    possible = step is not None and step < last and run.state in RESTING
    st.button(
        "Continue from here",
        key="continue",
        on_click=continue_from,
        args=(step, wanted),
        disabled=not possible,
        help=f"Trains on from step {step} with the knobs as they are; Undo brings back what came after it."
        if possible
        else "Pause, and scrub back to a step: from there the run can go on with other knobs.",
    )


def continue_from(step: int, wanted: RunConfig) -> None:
    """The run goes on from that step, with the knobs of the controls."""
    run = present_run()
    if run is None:
        return
    with told():
        if step == 0:
            restart(wanted)
            act("play")
        else:
            run.continue_from(step, knobs(run, wanted))
            undo.note_run(f"continuing from step {step}")
    st.session_state[SHOWN] = None


def knobs(run: LiveRun, wanted: RunConfig) -> dict[str, Any]:
    """What may turn while it trains, as it is now.

    Of a recording: as it was at the end, but for what the controls say otherwise than it began with.
    """
    shown = run.shown
    values = in_force(run.config if shown is None else shown.config)
    if shown is not None and wanted.loss == shown.config.loss:
        began, now = in_force(basis(shown.config)), in_force(basis(wanted))
        values |= {name: value for name, value in now.items() if began[name] != value}
    return {name: values[name] for name in (LEARNING_RATE, *live_options(run.config.loss))}


def run_file(run: LiveRun) -> None:
    """Save run and Open run."""
    recording = run.recording
    if recording is not None and recording.frames and run.state not in ("queued", "preparing"):
        st.download_button(
            "Save run",
            partial(as_file, recording),
            file_name(recording),
            "application/octet-stream",
            on_click="ignore",
            help="Settings, every frame and curve in one file; Open run shows it again, here or elsewhere.",
        )
    turn = st.session_state.get(TURN, 0)
    given = st.file_uploader(
        "Open run",
        type="npz",
        key=f"open run {turn}",
        max_upload_size=MAX_FILE // 10**6,
        help="A file that Save run made. It is shown as it was recorded; Play trains the same settings live.",
    )
    if given is not None:
        st.session_state[TURN] = turn + 1  # the field is empty again, whatever comes of the file
        open_file(run, given.name, given.getvalue())


def open_file(run: LiveRun, name: str, content: bytes) -> None:
    """Shows the run of a file; says why if that cannot be."""
    try:
        recording = open_run(content)
        run.reset(recording.config, recording)
    except ParameterError as error:
        st.warning(f"{name}: {sentence(str(error).removeprefix('run file: '))}")
        return
    st.session_state[OPENED] = (recording, name)
    st.session_state[SHOWN] = None
    st.session_state[ARRIVES] = True
    undo.note_run(f"opening {name}")
    st.rerun()


def arrive() -> None:
    """Before the first control: those take the settings of the file that was opened."""
    if not st.session_state.pop(ARRIVES, False):
        return
    texts = st.session_state[OPENED][0].config.to_settings(full=True)
    for name in (EVENTS, PRESET):  # the address's own; all else in it follows its control
        if name in st.query_params:
            del st.query_params[name]
    if EVENTS in texts:
        st.query_params[EVENTS] = texts.pop(EVENTS)
    for key, text in texts.items():
        st.session_state[key] = value_of(key, text)
    st.session_state[undo.QUIET] = True


def value_of(key: str, text: str) -> Any:
    """The value that the control of a setting holds for this text; see `ui.controls.control`."""
    param = declaration(key)
    return param.parse(text, key) if param.kind in ("bool", "choice", "int", "float") else text


def introduce(run: LiveRun) -> None:
    """What is shown, if it is a file that somebody opened, and what differs from where it was made."""
    opened: tuple[Recording, str] | None = st.session_state.get(OPENED)
    if opened is None or run.shown is not opened[0]:
        return
    recording, name = opened
    st.info(
        " ".join(
            [
                f"**{name}**, recorded to step {recording.frames[-1].step}. Scrub through it; Play trains "
                "the same settings live, Continue from here goes on from a frame.",
                *recording.notes,
            ]
        )
    )
