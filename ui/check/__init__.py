"""The Check page: the audit of a loss, and embeddings that somebody brings."""

from __future__ import annotations

import streamlit as st

from losslib import catalog

VIEWS = ("Audit a loss", "Check my embeddings")
VIEW, LOSS = "check.view", "check.loss"


def say_what_was_refused() -> None:
    """A sentence for each value of the link that is none of the page's."""
    known = {VIEW: VIEWS, LOSS: tuple(catalog.losses())}
    for key, values in known.items():
        given = st.query_params.get(key)
        if given is not None and given not in values:
            st.warning(
                f"The link asks for {key} {given[:60]!r}, which is not there, so the default is shown; "
                f"known: {', '.join(values[:8])}{' and more' if len(values) > 8 else ''}."
            )


def chosen_view() -> str:
    """Which half of the page is shown."""
    kept = "check shown"
    if VIEW not in st.session_state and VIEW not in st.query_params:
        st.session_state[VIEW] = st.session_state.get(kept, VIEWS[0])
    chosen = st.segmented_control("What to check", VIEWS, key=VIEW, bind="query-params", required=True)
    st.session_state[kept] = chosen or VIEWS[0]
    return str(st.session_state[kept])
