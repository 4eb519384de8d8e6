"""The one run of the Learn page: trains a lesson's runs one after the other and keeps what they recorded."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import streamlit as st

from lab.config import RunConfig
from lab.recording import Recording
from lab.settings import sentence
from losslib.errors import ParameterError
from ui.live.panel import live_panel
from ui.live.route import VIEWERS, command
from ui.server import scheduler
from ui.session import OWNER, belongs_here

if TYPE_CHECKING:
    from lab.scheduler import LiveRun

TOKEN, SERIES, NOTICE = "learn token", "learn series", "learn notice"
STORE = "losslab.learn"  # what the browser tab remembers its run under; Train has another
ENDED = ("finished", "diverged", "failed", "recorded")
POLL = 0.5


@dataclass
class Series:
    """Runs that are trained one after the other.

    Args:
        key: what they belong to; another key is another series.
        configs: by name, in order.
        recordings: of those that have ended.
        now: which one the run is at or shows.
        step: of a frozen moment, the step it waits at; None trains to the end.
    """

    key: tuple[object, ...]
    configs: dict[str, RunConfig]
    recordings: dict[str, Recording] = field(default_factory=dict)
    now: str = ""
    step: int | None = None

    @property
    def done(self) -> bool:
        """Whether every run has ended."""
        return all(name in self.recordings for name in self.configs)

    @property
    def next(self) -> str:
        """The first that has not ended, or ""."""
        return next((name for name in self.configs if name not in self.recordings), "")


def run_here() -> LiveRun | None:
    """The page's run, if the server still has it."""
    token = st.session_state.get(TOKEN)
    return scheduler().get(token) if token else None


def series(key: tuple[object, ...]) -> Series | None:
    """The series of that key, if it is the one at hand."""
    found = st.session_state.get(SERIES)
    return found if found is not None and found.key == key else None


def begin(
    key: tuple[object, ...],
    configs: Mapping[str, RunConfig],
    shipped: Mapping[str, Recording] | None = None,
    step: int | None = None,
) -> Series | None:
    """Begins a series: shows shipped recordings, else trains it. None where that is refused, which is said.

    Args:
        key: what it belongs to.
        configs: runs by name, in order.
        shipped: recordings by name, of all or none.
        step: freeze there instead of training to the end.
    """
    made = Series(key, dict(configs), dict(shipped or {}), step=step)
    st.session_state[SERIES] = made
    try:
        show(made, next(iter(made.configs)))
    except ParameterError as error:
        st.session_state[NOTICE] = str(error)
        del st.session_state[SERIES]
        return None
    return made


def show(made: Series, name: str) -> None:
    """Sets the page's run to one of the series: its recording if it has ended, else it trains. May raise
    ParameterError."""
    made.now = name
    config, recording = made.configs[name], made.recordings.get(name)
    run = run_here()
    if run is None:
        owner = st.session_state.setdefault(OWNER, secrets.token_hex(8))
        run = scheduler().open(config, owner, recording)
        st.session_state[TOKEN] = run.token
        belongs_here(run.token)
    else:
        run.reset(config, recording)
    if recording is None and made.step is None:
        run.play()
    elif recording is None and made.step:
        run.play(until=made.step)


def advance(made: Series) -> bool:
    """Takes over a run that has ended and begins the next; returns whether something changed."""
    if made.done or made.step is not None:
        return False
    run = run_here()
    if run is None:  # the server dropped it: what has ended is kept
        show(made, made.next)
        return True
    if run.state not in ENDED or run.recording is None or not made.now:
        return False
    made.recordings[made.now] = copied(run.recording, run.reason)
    show(made, made.next or made.now)  # as a recording the last one takes no place from others
    return True


def leave() -> None:
    """No run of the page is in view: one under way gives its place to others, recordings stay."""
    made, run = st.session_state.get(SERIES), run_here()
    if run is not None and run.shown is None:
        scheduler().close(run.token)
        del st.session_state[TOKEN]
        if made is not None and not made.done:
            del st.session_state[SERIES]


def copied(recording: Recording, reason: str = "") -> Recording:
    """The recording as it is now: its run may be trained on, and the mark is that of the lesson's steps."""
    made = Recording(recording.config, recording.probe, recording.labels, recording.class_names)
    made.frames, made.chance = recording.frames, recording.chance
    made.restore_curves(recording.curves())
    made.state, made.reason = recording.state, reason or recording.reason
    made.provenance = recording.provenance
    return made


def follow(made: Series) -> None:
    """The bar of a series under way; the page runs again whenever one of its runs has ended."""
    total = sum(config.steps for config in made.configs.values())

    @st.fragment(run_every=POLL)
    def bar() -> None:
        try:
            changed = advance(made)
        except ParameterError as error:
            st.session_state[NOTICE] = str(error)
            changed = True
        if changed:
            st.rerun()
        run = run_here()
        if run is None:
            return
        run.sign_of_life()  # a page that asks is a page that is watched, with a socket or without
        before = sum(made.configs[name].steps for name in made.recordings if name in made.configs)
        place = list(made.configs).index(made.now) + 1 if made.now in made.configs else 1
        several = f"Run {place} of {len(made.configs)}, " if len(made.configs) > 1 else ""
        words = f"{several}step {run.step} of {run.total}"
        words = sentence(run.reason) if run.state == "queued" else f"{words[0].upper()}{words[1:]}"
        with st.container(horizontal=True, vertical_alignment="center"):
            st.progress(min((before + run.step) / total, 1.0), text=words)
            if run.state == "paused":
                st.button("Go on", key="learn go on", on_click=press, args=("play",), type="primary")

    bar()


def press(name: str) -> None:
    """Play, pause or step the page's run."""
    run = run_here()
    if run is not None:
        with told():
            command(run, name)


def turn(option: str, key: str) -> None:
    """A control of the page was turned: the change holds from the next step on."""
    run, value = run_here(), st.session_state.get(key)
    if run is not None and value is not None:
        with told():
            run.change(option, value)


@contextmanager
def told() -> Iterator[None]:
    """A refusal becomes a sentence on the page instead of an error."""
    try:
        yield
    except ParameterError as error:
        st.session_state[NOTICE] = str(error)


def tell() -> None:
    """What went wrong behind the person's back, once."""
    if notice := st.session_state.pop(NOTICE, ""):
        st.warning(sentence(notice))


def play_again() -> None:
    """Play, where the run shown is a recording, as its panel says."""
    run = run_here()
    if run is not None and run.shown is not None:
        st.button(
            "Play", on_click=press, args=("play",), help="Trains this run live, from step 0. A mark stays."
        )


def panel(step: int | None = None, allowed: Sequence[str] | None = None) -> None:
    """The live panel of the page's run.

    Args:
        step: shown first; None for the newest.
        allowed: commands that its keys give; None for all of them.
    """
    made = st.session_state.get(SERIES)
    if run_here() is None and made is not None and made.now:
        with told():  # the server dropped it while nobody looked
            show(made, made.now)
    run = run_here()
    if run is None:
        return
    belongs_here(run.token)
    live_panel(
        run,
        step,
        None,
        on_adopt=adopt,
        on_lost=lost,
        on_command=press,
        on_moment=lambda _step: None,
        store=STORE,
        allowed=allowed,
    )


def adopt(told: str) -> None:
    """After a reload the tab's former run is of no use without its series: it is closed, unless another tab
    watches it."""
    token = told.partition(" ")[0]
    if token != st.session_state.get(TOKEN) and scheduler().get(token) is not None and not VIEWERS[token]:
        scheduler().close(token)


def lost(token: str) -> None:
    """The server has the run no more: the series goes on from the runs that have ended."""
    if token == st.session_state.get(TOKEN):
        del st.session_state[TOKEN]
