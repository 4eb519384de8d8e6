"""The Check page: the audit of a loss, and embeddings that somebody brings."""

from __future__ import annotations

import streamlit as st

from losslib import catalog
from ui.reference import no_setting

VIEWS = ("Audit a loss", "Check my embeddings")
PREFIX = "check."
VIEW, LOSS = f"{PREFIX}view", f"{PREFIX}loss"


def why_not(key: str, text: str) -> str:
    """Why the page cannot have that of a link; "" where it can. Raises ParameterError for a bad value."""
    owner, _, option = key.removeprefix(PREFIX).removeprefix("my.").rpartition(".")
    if key == LOSS:
        catalog.get(text)
    elif key == VIEW:
        return "" if text in VIEWS else f"{VIEW} must be one of {', '.join(VIEWS)}, got {text[:60]!r}"
    elif owner in catalog.losses() and option in catalog.get(owner).params:
        catalog.get(owner).params[option].parse(text, owner)
    else:
        return no_setting(key)
    return ""


def chosen_view() -> str:
    """Which half of the page is shown."""
    chosen = st.segmented_control(
        "What to check", VIEWS, default=VIEWS[0], key=VIEW, bind="query-params", required=True
    )
    return str(chosen)
