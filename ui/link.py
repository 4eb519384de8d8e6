"""The link is the state: what arrived is checked before the first control, what was refused is said."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

import datasets
from lab import presets
from lab.config import RunConfig, folded
from lab.links import read_settings
from lab.presets import Preset
from lab.settings import sentence, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param
from ui.controls import SPAN
from ui.left import ENTERED, enter_with
from ui.session import present_run

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PRESET, STEP, SHOW = "preset", "step", "show"
SWITCHES = ("figures", "advice")  # of the page, that a link can turn on
GOAL = "link.step"  # the step that the link of this visit asked for
REFUSED = "link.refused"
ASKED = "The link asks for something that is not possible, so the default is used."


def arrived() -> tuple[RunConfig, tuple[str, ...]]:
    """The config the link asks for, and a sentence for each value that was refused.

    Streamlit drops bad values of controls from the address; names that no control has are dropped here.
    """
    given = {key: str(value) for key, value in st.query_params.to_dict().items()}
    name, step = given.pop(PRESET, None), given.pop(STEP, None)
    turn_on(given.pop(SHOW, ""))
    unknown = refused_preset(name, alone=not given)
    if not given and not unknown and step is None:
        recall()
        return RunConfig(), ()
    config, refusals = read_settings(given)
    refusals = (*unknown, *refusals, *refused_step(step, config))
    if refusals:
        for key in (*given, *([PRESET] if unknown else ())):
            if not is_setting(key, config):
                del st.query_params[key]
    return config, refusals


def turn_on(names: str) -> None:
    """The switches that a link shows as on; what is no switch is left out."""
    if SHOW in st.query_params:
        del st.query_params[SHOW]
    for name in set(names.split(",")) & {*SWITCHES}:
        st.session_state[name] = True


def tell(place: DeltaGenerator, refusals: tuple[str, ...], found: dict[str, str]) -> tuple[str, ...]:
    """Says what was refused, until a control changes or another link is opened; returns what it said.

    The address loses bad values at once, and a tab that had a run before runs the script again to adopt
    it; so what was said is kept with the settings it was said of.

    Args:
        place: where it is said.
        refusals: what `arrived` refused this time.
        found: what the controls say. That they do not go together is the link's fault only on arrival.
    """
    entered = bool(st.session_state.get(ENTERED))
    kept = None if entered else st.session_state.get(REFUSED)
    if kept is None or kept[1] != found or not set(refusals) <= set(kept[0]):
        kept = (refusals if entered else tuple(text for text in refusals if text != conflict(found)), found)
    st.session_state[REFUSED] = kept
    if kept[0]:
        place.warning("\n".join([ASKED, *(f"- {sentence(text)}" for text in kept[0])]))
    return kept[0]


def conflict(found: dict[str, str]) -> str:
    """Why the settings of the controls do not go together; "" if they do."""
    try:
        RunConfig.from_settings(found)
    except ParameterError as error:
        return str(error)
    return ""


def refused_preset(name: str | None, alone: bool) -> tuple[str, ...]:
    """A sentence when no preset has that name. A link with nothing but a preset gets its settings."""
    if name is None:
        return ()
    try:
        asked = presets.get(name)
    except ParameterError as error:
        return (str(error),)
    if alone and st.session_state.get(ENTERED):
        step = st.query_params.get(STEP)
        enter_with({PRESET: name, **asked.settings} | ({} if step is None else {STEP: step}))
    return ()


def recall() -> None:
    """Entered without settings, as by the browser's Back: the controls take those of the session's run."""
    run = present_run()
    if run is None or not st.session_state.get(ENTERED):
        return
    texts = folded(run.config).to_settings()
    if run.shown is not None:
        names = [preset.name for preset in presets.presets() if preset.config() == run.config]
        texts |= {PRESET: names[0]} if names else {}
    if texts:
        enter_with(texts)


def refused_step(text: str | None, config: RunConfig) -> tuple[str, ...]:
    """A sentence when the run cannot have that step; else it is remembered as what the link asks for."""
    if text is None:
        return ()
    try:
        st.session_state[GOAL] = Param(0, valid=Integer(0, config.steps)).parse(text, STEP)
    except ParameterError as error:
        del st.query_params[STEP]
        return (f"{error}; the run has {config.steps} steps and is shown from step 0",)
    return ()


def goal() -> int:
    """The step that the link of this visit asked for, once; from then on the address is that of the run."""
    if STEP in st.query_params:
        del st.query_params[STEP]
    return int(st.session_state.pop(GOAL, 0))


def preset_of(config: RunConfig) -> Preset | None:
    """The preset of the link, as long as the settings are its own."""
    with suppress(ParameterError):
        asked = presets.get(st.query_params.get(PRESET, ""))
        if asked.config() == config:
            return asked
    return None


def is_new() -> bool:
    """Whether the page was entered by a link with settings; then what the link leaves out is at its default.

    Streamlit would keep the values that controls had when the page was last open in this tab.
    """
    if not st.session_state.get(ENTERED) or not st.query_params:
        return False
    owners = {*datasets.catalog(), *catalog.losses(), *catalog.miners()}
    for key in map(str, list(st.session_state)):
        owner = key.partition(".")[0]
        left_out = (key in settings() or owner in owners) and key not in st.query_params
        if left_out or key.startswith(SPAN):  # another link also makes other ranges of the sliders
            del st.session_state[key]
    return True


def is_setting(key: str, config: RunConfig) -> bool:
    """Whether a control of the page has that name."""
    owner, dot, _ = key.rpartition(".")
    return owner in (config.data, config.loss, config.miner) if dot else key in settings()


def link_to(config: RunConfig, step: int | None = None) -> str:
    """The address of this page that opens exactly this run, at a step."""
    place = (st.context.url or "").partition("?")[0]
    texts = config.to_settings() | ({STEP: str(step)} if step else {})
    if on := [name for name in SWITCHES if st.session_state.get(name)]:
        texts[SHOW] = ",".join(on)
    return f"{place}?{urlencode(texts, safe=':,=.')}" if texts else place or "/"
