"""The controls of the Train page: what a run is made of, and the knobs that turn while it trains."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

import datasets
from lab.config import LEARNING_RATE, RunConfig, live_options, trainable_losses
from lab.encoders import ENCODERS
from lab.settings import encoders_for, sentence, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param
from ui import focus, recordings, sharing, take_home, undo
from ui.controls import control, options_of
from ui.pairing import batch_settings, miner_controls, pairing_controls
from ui.places import grid, place
from ui.session import act, change, pending, present_run, restart

if TYPE_CHECKING:
    from lab.presets import Preset
    from lab.scheduler import LiveRun

FREE_RATE = (
    "A point moves only in the batches that draw it, so it needs a larger learning rate than a network: "
    "among thousands of points about 0.03."
)
SPEEDS: dict[str, float | None] = {"2 steps/s": 2.0, "5 steps/s": 5.0, "20 steps/s": 20.0, "full": None}


def structure() -> dict[str, str]:
    """Draws what only a new run can take over, in the sidebar; returns the settings as texts."""
    table = settings()
    found: dict[str, str] = {}

    def draw(name: str, choices: tuple[str, ...] = ()) -> str:
        found[name] = control(table[name], name, choices)
        return found[name]

    with st.sidebar:
        st.header("What is trained", anchor=False)
        data = datasets.get(draw("data"))
        st.caption(f"**{data.title}.** {data.summary}")
        found |= options_of(data.name, data.title.lower(), data.options)
        with place():
            pairing = pairing_controls(draw, data)
        loss = catalog.get(draw("loss", trainable_losses(pairing)))
        st.caption(f"**{loss.title}.** {loss.summary}")
        with st.expander("Equation and paper"):
            st.latex(loss.equation)
            st.caption(loss.paper.linked())
        options = {n: p for n, p in loss.params.items() if n not in live_options(loss.__name__)}
        with place():
            for name, param in options.items():
                found[f"{loss.__name__}.{name}"] = control(param, f"{loss.__name__}.{name}")
        with place():
            found |= miner_controls(draw, loss.__name__)
        with place():
            if draw("encoder", ("auto", *encoders_for(data.kind, pairing))) == "free":
                st.caption(f"{ENCODERS['free'].summary} {FREE_RATE}")
        draw("dim")
        draw("output")
        with st.expander("Batches, optimiser, seed", expanded=False):
            for name in batch_settings(pairing):
                draw(name)
    return found


def knobs(loss: str) -> dict[str, str]:
    """Draws what may change while it trains, above the panel; returns the settings as texts.

    A run that goes on with another loss than the one chosen keeps its own knobs, too.
    """
    run = present_run()
    with grid("knobs"):
        if run is not None and run.step and run.shown is None and run.config.loss != loss:
            st.caption(f"Of the run shown, which goes on with {catalog.get(run.config.loss).title}:")
            draw_knobs(of_loss(run.config.loss))
            st.caption(f"Of a new run with {catalog.get(loss).title}, and the learning rate:")
        return draw_knobs({**of_loss(loss), LEARNING_RATE: settings()[LEARNING_RATE]})


def of_loss(loss: str) -> dict[str, Param]:
    """Options of a loss that may change while it trains, by key."""
    return {f"{loss}.{name}": param for name, param in live_options(loss).items()}


def draw_knobs(turning: dict[str, Param]) -> dict[str, str]:
    """One after the other; returns their texts."""
    return {key: control(param, key, on_change=partial(change, key)) for key, param in turning.items()}


def wanted_config(found: dict[str, str], asked: RunConfig, said: tuple[str, ...] = ()) -> RunConfig:
    """The config of the controls, with the link's changes while training if it is the link's loss.

    If the controls do not go together: what the link asked for if the link was said to be the reason, else
    a sentence, and the config of the run shown.
    """
    try:
        config = RunConfig.from_settings(found)
    except ParameterError as error:
        run = present_run()
        if str(error) in said or run is None:
            return asked
        st.warning(f"{sentence(str(error))} The run shown keeps its own settings.")
        return run.config
    return replace(config, events=asked.events) if config.loss == asked.loss else config


def introduce(preset: Preset | None) -> None:
    """What to look for in a preset, and for a failure what helps."""
    if preset is not None:
        cure = f" **Cure.** {preset.cure}" if preset.cure else ""
        st.info(f"**{preset.title}.** {preset.look}{cure}")


def buttons(run: LiveRun, wanted: RunConfig) -> None:
    """Play, Pause, Step, Reset, how fast, what takes a change back, and what leaves the page."""
    focus.target("run-buttons")
    with st.container(key="run-buttons", horizontal=True, vertical_alignment="bottom", gap="xsmall"):
        st.button("Play", on_click=act, args=("play",), type="primary", help="Train until the last step")
        st.button("Pause", on_click=act, args=("pause",), help="Stop after the present step")
        st.button("Step", on_click=act, args=("step",), help="One batch, one gradient, one update")
        st.button(
            "Phase",
            on_click=act,
            args=("phase",),
            help="Slow motion: the next of a step's six phases: sample, embed, pair, loss, gradient, update",
        )
        st.button(
            "Reset",
            on_click=begin_again,
            args=(wanted, "Reset"),
            help="Back to step 0 with the settings shown. The same seed gives the same run.",
        )
        speed = st.selectbox(
            "Speed",
            list(SPEEDS),
            len(SPEEDS) - 1,
            key="speed",
            width=115,
            persist_state="session",
            help="How many steps a second: slow enough to follow by eye, or as fast as the server can.",
        )
        run.speed = SPEEDS[speed]
        undo.button(run)
        recordings.continue_button(run, wanted)
        # what is not open is not worked out: a QR code takes longer than the rest of the page
        leaving = st.popover("Take home", key="take home", on_change="rerun")
        if leaving.open:
            with leaving:
                take_home.everything(run)
        shared = st.popover("Link", key="link", on_change="rerun")
        if shared.open:
            with shared:
                sharing.link(run)


def begin_again(wanted: RunConfig, what: str) -> None:
    """Back to step 0; what was trained until then can be brought back."""
    restart(wanted)
    undo.note_run(what)


def offer_restart(run: LiveRun, wanted: RunConfig) -> None:
    """Names the changed settings that the run shown does not have, and offers a new run with them."""
    names = pending(wanted, run.config)
    if not names or run.step == 0:
        return
    listed = ", ".join(names)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(f"Changed, but not in the run shown: {listed}. Only a new run takes that over.")
        what = f"the new run ({listed})"
        st.button("Start a new run with these", on_click=begin_again, args=(wanted, what), type="primary")
