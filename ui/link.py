"""The link is the state: what arrived is checked before the first control, what was refused is said."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from lab.config import RunConfig
from lab.links import EVENTS, read_settings

REFUSED = "link.refused"
READ = "link.read"


def arrived() -> RunConfig:
    """The config the link asks for. Refused values leave the address, so that the controls show defaults."""
    given = {key: str(value) for key, value in st.query_params.to_dict().items()}
    if not given:
        return RunConfig()
    config, refusals = read_settings(given)
    if refusals:
        st.session_state[REFUSED] = refusals
        kept = config.to_settings(full=True)
        for key, value in given.items():
            if kept.get(key) != value and not is_same(kept.get(key), value):
                forget(key)
    return config


def forget(key: str) -> None:
    """Takes a value out of the address and out of the control that would read it."""
    if key in st.query_params:
        del st.query_params[key]
    st.session_state.pop(key, None)


def is_same(kept: str | None, given: str) -> bool:
    """Whether two spellings mean the same number, such as 0.10 and 0.1."""
    try:
        return kept is not None and float(kept) == float(given)
    except ValueError:
        return False


def show_refusals() -> None:
    """One sentence a refused value, until the next change; the defaults are in use."""
    refusals = st.session_state.pop(REFUSED, ())
    if not refusals:
        return
    lines = [f"{sentence[:1].upper()}{sentence[1:]}" for sentence in refusals]
    st.warning(
        "The link asked for something that is not possible, so the default is used. " + ". ".join(lines) + "."
    )


def link_to(config: RunConfig, page: str) -> str:
    """The address, without the server, that opens exactly this run."""
    settings = config.to_settings()
    return f"/{page}?{urlencode(settings, safe=':,=.')}" if settings else f"/{page}"


__all__ = ["EVENTS", "arrived", "link_to", "show_refusals"]
