"""Which run belongs to this browser tab, and how changes of the controls reach it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.config import LEARNING_RATE, RunConfig, folded, live_options
from lab.links import EVENTS
from lab.settings import sentence
from lab.titles import called
from losslib.errors import ParameterError
from ui.live.route import VIEWERS, command
from ui.server import scheduler

if TYPE_CHECKING:
    from lab.recording import Recording
    from lab.scheduler import LiveRun

TOKEN = "run.token"
NOTICE = "run.notice"
OWNER = "run.owner"
SHOWN = "run.shown_step"  # the step scrubbed to; absent or None: the newest frame
LOST = (
    "The server no longer has the former run: it was restarted, or nobody watched for too long. "
    "This is a new one with the same settings; Play trains it."
)


def present_run() -> LiveRun | None:
    """The run this session has, if the server still has it."""
    token = st.session_state.get(TOKEN)
    return scheduler().get(token) if token else None


def run_for(
    wanted: RunConfig, new_link: bool = False, recording: Recording | None = None, goal: int = 0
) -> LiveRun | None:
    """This session's run, opened if there is none. Before its first step it simply follows the controls.

    A new link begins a new run, unless it stands for the present one, as the browser's Back does; going
    from page to page does not. Where the server refuses what is wanted it says why, and the run stays as
    it is.

    Args:
        wanted: what the controls say.
        new_link: whether the page was entered by a link with settings.
        recording: what a run that is begun shows until it is trained.
        goal: the step that a run that is begun trains to at once, to pause there.
    """
    run = present_run()
    if run is None and TOKEN in st.session_state:
        st.info(LOST)
    try:
        if run is None:
            owner = st.session_state.setdefault(OWNER, secrets.token_hex(8))
            run = scheduler().open(wanted, owner, recording)
            st.session_state[TOKEN] = run.token
            go_to(run, goal)
        elif new_link and (not stands_for(wanted, run.config) or (recording and run.state == "ready")):
            run.reset(wanted, recording)
            go_to(run, goal)
        elif new_link and goal:
            go_to(run, goal)
        elif run.shown is not None:
            run.intend(wanted)
        elif run.step == 0 and run.state != "running" and basis(run.config) != basis(wanted):
            run.reset(wanted)
        elif wanted.steps > run.total and run.step > 0:
            run.extend(wanted.steps - run.total)
    except ParameterError as error:
        st.warning(sentence(str(error)))
    if run is not None:
        belongs_here(run.token)
    return run


def go_to(run: LiveRun, goal: int) -> None:
    """Trains to a step and pauses there; a step already made is shown from the history."""
    st.session_state[SHOWN] = None
    if goal > run.step:
        run.play(until=goal)
    elif goal:
        st.session_state[SHOWN] = goal


def show_moment(step: str) -> None:
    """The panel was scrubbed to a step while the run stands still; "newest" is no step."""
    st.session_state[SHOWN] = int(step) if step.isdecimal() else None


def shown_step(run: LiveRun) -> int | None:
    """The step scrubbed to, if the run stands still and has a frame of it; else None, the newest."""
    step, recording = st.session_state.get(SHOWN), run.recording
    if step is None or recording is None or not run.stands_still:
        return None
    return step if any(frame.step == step for frame in recording.frames) else None


def step_in_view(run: LiveRun) -> int | None:
    """The step a link to this moment holds; None while the run trains, as it would be another at once."""
    if not run.stands_still:
        return None
    shown = shown_step(run)
    return run.step if shown is None else shown


def orphan(token: str) -> None:
    """Nobody may come back: the run has a minute of grace."""
    run = scheduler().get(token)
    if run is not None:
        run.orphan()


@st.cache_resource(scope="session", show_spinner=False, on_release=orphan)
def belongs_here(token: str) -> str:
    """Remembered as long as the session is connected; released at a closed tab and at every network blip."""
    run = scheduler().get(token)
    if run is not None:
        run.adopt()
    return token


def basis(config: RunConfig) -> RunConfig:
    """What a run starts from: everything but the changes made while it trains."""
    return replace(config, events=())


def stands_for(wanted: RunConfig, config: RunConfig) -> bool:
    """Whether a link with these settings may be that run's own, as it began or with its knobs as they are."""
    return replace(wanted, events=(), steps=config.steps) in (basis(config), folded(config))


def pending(wanted: RunConfig, config: RunConfig) -> list[str]:
    """The settings that only a new run can take over, as their controls are called."""
    mine, theirs = config.to_settings(full=True), wanted.to_settings(full=True)
    live = {
        LEARNING_RATE,
        "steps",
        "events",
        *(f"{config.loss}.{name}" for name in live_options(config.loss)),
    }
    if wanted.loss == config.loss:
        names = mine.keys() | theirs.keys()
    else:
        names = set(mine.keys() & theirs.keys()) | {"loss"}
    return sorted({called(name) for name in names - live if mine.get(name) != theirs.get(name)})


def change(key: str) -> None:
    """A knob that may turn while it trains was turned: the change is recorded at the next step."""
    run, value = present_run(), st.session_state.get(key)
    if run is None or value is None or run.shown or (run.step == 0 and run.state != "running"):
        return  # a recording, or a run before its first step, follows the controls as a whole
    owner, _, name = key.rpartition(".")
    if owner in ("", run.config.loss):
        with told():
            run.change(name, value)


def act(name: str) -> None:
    """Play, pause or step."""
    run = present_run()
    if run is not None:
        with told():
            command(run, name)


def restart(wanted: RunConfig) -> None:
    """Back to step 0 with the settings shown; the same seed gives the same run."""
    run = present_run()
    st.session_state[SHOWN] = None
    if EVENTS in st.query_params:
        del st.query_params[EVENTS]
    if run is not None:
        with told():
            run.reset(wanted)


@contextmanager
def told() -> Iterator[None]:
    """A refusal becomes a sentence on the page instead of an error."""
    try:
        yield
    except ParameterError as error:
        st.session_state[NOTICE] = str(error)


def adopt(told: str) -> None:
    """After a reload: go on with the run this tab had, unless another tab watches it.

    Args:
        told: its token, a space and its step.
    """
    token, _, step = told.partition(" ")
    former = scheduler().get(token)
    if former is None and step != "0":
        st.session_state[NOTICE] = LOST
    if former is None or VIEWERS[token] or token == st.session_state.get(TOKEN):
        return
    mine = st.session_state.get(TOKEN)
    if mine:
        scheduler().close(mine)
    former.adopt()
    st.session_state[TOKEN] = token
    st.session_state[SHOWN] = None


def replace_lost(token: str) -> None:
    """The server no longer has the run: let the script open one with the same settings; the panel says so."""
    if token == st.session_state.get(TOKEN):
        del st.session_state[TOKEN]


def show_notice() -> None:
    """What happened to the run behind the person's back, once."""
    notice: Any = st.session_state.pop(NOTICE, "")
    if notice:
        st.info(sentence(notice))
