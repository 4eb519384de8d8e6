"""Who comes back to a page finds what they left there.

The rule, for every page whose settings are in its address: entered with a link, the page is as that says, and
what the link leaves out is at its default. Entered without one, as by the sidebar or by the browser's Back,
whose entries have lost what controls wrote into them, it is as it was left in this tab: that goes into the
address, from where controls and panels take it. What was left at the Train page is its run (`ui.link`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from ui import address

PRESENT, ENTERED = "page.present", "page.entered"


def enter(title: str) -> None:
    """Every page begins with this: whether another one was shown before, and what the address says."""
    state = st.session_state
    former, state[PRESENT] = state.get(PRESENT, ""), title
    state[ENTERED] = former != title
    if state[ENTERED]:
        address.forget()
        for key in set(_memory().get(former, {})) & set(st.query_params):
            del st.query_params[key]  # by Back Streamlit leaves there what panels of the former page wrote
    else:
        note()  # already now: who leaves a page that takes long does so before its end


def note() -> None:
    """What the address says is what the page is left with: once it is drawn, or a panel has written."""
    _memory()[st.session_state[PRESENT]] = address.link()


def texts() -> dict[str, list[str]]:
    """What the page was left with."""
    return _memory().get(st.session_state[PRESENT], {})


def find(prefix: str, otherwise: Callable[[], Mapping[str, str]] = dict) -> None:
    """The rule; before the first control of a page.

    Args:
        prefix: what the keys of the page's settings begin with, and no other key of the session's state.
        otherwise: settings for who enters for the first time without a link.
    """
    state = st.session_state
    if not state[ENTERED]:
        return
    if not st.query_params and (settings := texts() or otherwise()):
        enter_with(settings)
    for key in [str(key) for key in state if str(key).startswith(prefix)]:
        if key not in st.query_params:
            del state[key]


def enter_with(settings: Mapping[str, Any]) -> None:
    """Enters the page once more, now with these settings in the address."""
    st.session_state[PRESENT] = ""
    st.query_params.from_dict(settings)
    st.rerun()


def _memory() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = st.session_state.setdefault("left", {})
    return found
