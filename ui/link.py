"""The link is the state: what arrived is checked before the first control, what was refused is said."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

import datasets
from lab.config import RunConfig
from lab.links import read_settings
from lab.settings import settings
from losslib import catalog
from ui.page import ENTERED
from ui.session import sentence


def arrived() -> tuple[RunConfig, tuple[str, ...]]:
    """The config the link asks for, and a sentence for each value that was refused and shown as such.

    Streamlit drops bad values of controls from the address; names that no control has are dropped here.
    """
    given = {key: str(value) for key, value in st.query_params.to_dict().items()}
    if not given:
        return RunConfig(), ()
    config, refusals = read_settings(given)
    if refusals:
        said = "\n".join(f"- {sentence(text)}" for text in refusals)
        st.warning(f"The link asks for something that is not possible, so the default is used.\n{said}")
        for key in given:
            if not is_setting(key, config):
                del st.query_params[key]
    return config, refusals


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
