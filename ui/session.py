"""Which run belongs to this browser tab, and how changes of the controls reach it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.config import LEARNING_RATE, RunConfig, live_options
from ui.live.route import VIEWERS, command
from ui.server import scheduler

if TYPE_CHECKING:
    from lab.scheduler import LiveRun

TOKEN = "run.token"
NOTICE = "run.notice"


def present_run() -> LiveRun | None:
    """The run this session has, if the server still has it."""
    token = st.session_state.get(TOKEN)
    return scheduler().get(token) if token else None


def run_for(wanted: RunConfig) -> LiveRun:
    """This session's run, opened if there is none. Before its first step it simply follows the controls."""
    run = present_run()
    if run is None:
        run = scheduler().open(wanted)
        st.session_state[TOKEN] = run.token
    elif run.step == 0 and run.state not in ("running",) and basis(run.config) != basis(wanted):
        run.reset(wanted)
    elif wanted.steps > run.config.steps and run.step > 0:
        run.extend(wanted.steps - run.config.steps)
    return run


def basis(config: RunConfig) -> RunConfig:
    """What a run starts from: everything but the changes made while it trains."""
    return replace(config, events=())


def pending(wanted: RunConfig, config: RunConfig) -> list[str]:
    """Names of the settings that only a new run can take over."""
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
    return sorted(name for name in names - live if mine.get(name) != theirs.get(name))


def change(key: str) -> None:
    """A knob that may turn while it trains was turned: the change is recorded at the next step."""
    run, value = present_run(), st.session_state.get(key)
    if run is None or value is None or run.step == 0:
        return
    owner, _, name = key.rpartition(".")
    if owner in ("", run.config.loss):
        run.change(name, value)


def act(name: str) -> None:
    """Play, pause or step."""
    run = present_run()
    if run is None:
        return
    if name == "play" and run.state == "finished":
        run.extend(run.config.steps)
    command(run, name)


def restart(wanted: RunConfig) -> None:
    """Back to step 0 with the settings shown; the same seed gives the same run."""
    run = present_run()
    if run is not None:
        run.reset(wanted)


def adopt(token: str) -> None:
    """After a reload: go on with the run this tab had, unless another tab watches it."""
    former = scheduler().get(token)
    if former is None or VIEWERS[token] or token == st.session_state.get(TOKEN):
        return
    mine = st.session_state.get(TOKEN)
    if mine:
        scheduler().close(mine)
    st.session_state[TOKEN] = token


def replace_lost(token: str) -> None:
    """The server no longer has the run: say so, and let the script open one with the same settings."""
    if token == st.session_state.get(TOKEN):
        del st.session_state[TOKEN]
        st.session_state[NOTICE] = (
            "The server no longer has this run: it was restarted, or nobody watched for a minute. "
            "A new run with the same settings is at step 0."
        )


def show_notice() -> None:
    """What happened to the run behind the person's back, once."""
    notice: Any = st.session_state.pop(NOTICE, "")
    if notice:
        st.info(notice)
