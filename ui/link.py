"""The link is the state: what arrived is checked before the first control, what was refused is said."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import urlencode

import streamlit as st

import datasets
from lab import presets
from lab.config import RunConfig, folded
from lab.links import read_settings
from lab.presets import Preset
from lab.settings import settings
from losslib import catalog
from losslib.errors import ParameterError
from ui.page import ENTERED, PRESENT
from ui.session import present_run, sentence

PRESET = "preset"


def arrived() -> tuple[RunConfig, tuple[str, ...]]:
    """The config the link asks for, and a sentence for each value that was refused and shown as such.

    Streamlit drops bad values of controls from the address; names that no control has are dropped here.
    """
    given = {key: str(value) for key, value in st.query_params.to_dict().items()}
    name = given.pop(PRESET, None)
    unknown = refused_preset(name, alone=not given)
    if not given and not unknown:
        recall()
        return RunConfig(), ()
    config, refusals = read_settings(given)
    refusals = (*unknown, *refusals)
    if refusals:
        said = "\n".join(f"- {sentence(text)}" for text in refusals)
        st.warning(f"The link asks for something that is not possible, so the default is used.\n{said}")
        for key in (*given, *([PRESET] if unknown else ())):
            if not is_setting(key, config):
                del st.query_params[key]
    return config, refusals


def refused_preset(name: str | None, alone: bool) -> tuple[str, ...]:
    """A sentence when no preset has that name. A link with nothing but a preset gets its settings."""
    if name is None:
        return ()
    try:
        asked = presets.get(name)
    except ParameterError as error:
        return (str(error),)
    if alone and st.session_state.get(ENTERED):
        enter_with({PRESET: name, **asked.settings})
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


def enter_with(texts: dict[str, str]) -> None:
    """Enters the page once more, now with these settings in the address."""
    st.session_state[PRESENT] = ""
    st.query_params.from_dict(texts)
    st.rerun()


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
    owners = {*datasets.catalog(), *catalog.losses()}
    for key in map(str, list(st.session_state)):
        owner = key.partition(".")[0]
        if (key in settings() or owner in owners) and key not in st.query_params:
            del st.session_state[key]
    return True


def is_setting(key: str, config: RunConfig) -> bool:
    """Whether a control of the page has that name."""
    owner, dot, _ = key.rpartition(".")
    return owner in (config.data, config.loss) if dot else key in settings()


def link_to(config: RunConfig) -> str:
    """The address of this page that opens exactly this run."""
    place = (st.context.url or "").partition("?")[0]
    texts = config.to_settings()
    return f"{place}?{urlencode(texts, safe=':,=.')}" if texts else place or "/"
