"""The keyboard's place on a page: where what had the focus is gone, what the page names has it next."""

from __future__ import annotations

import time
from pathlib import Path

import streamlit as st

TARGET, VIEW, ONCE = "focus target", "focus view", "focus once"
# It takes no room, and is no gap between two others.
STYLE = "[class*='st-key-focus'] { position: absolute; width: 0; }"

_FILES = [Path(__file__).with_name(name) for name in ("scrolling.js", "popovers.js", "focus.js")]
_COMPONENT = st.components.v2.component(
    "losslab_focus", js="\n".join(file.read_text(encoding="utf-8") for file in _FILES)
)


def begin() -> None:
    """Nothing is named yet, in this run of the script."""
    st.session_state[TARGET], st.session_state[VIEW] = "", ""


def target(key: str, view: str = "") -> None:
    """What gets the focus where that was lost; the last call of a script's run counts.

    Args:
        key: of a container, without spaces.
        view: what it stands for, such as a lesson's name: another one is another view.
    """
    st.session_state[TARGET], st.session_state[VIEW] = key, view


def once(key: str) -> None:
    """Instead of what the page names, at the next run of the script: for callbacks.

    Args:
        key: of a container, without spaces.
    """
    st.session_state[ONCE] = key


def keep(page: str, entered: bool) -> None:
    """Tells the browser what this run of the script has named.

    Args:
        page: its title.
        entered: whether another page was shown before: then its title gets the focus.
    """
    once_only = st.session_state.pop(ONCE, "")
    named = "" if entered else st.session_state[TARGET]
    with st.container(key="focus"):
        view = f"{page} {st.session_state[VIEW]}"
        data = {"target": named, "view": view, "once": once_only, "time": time.time()}
        _COMPONENT(key="focus keeper", data=data)
