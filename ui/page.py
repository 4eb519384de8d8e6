"""The frame of every page: title, navigation, and one place where errors become a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from ui.errors import show_error
from ui.navigation import draw_navigation


@contextmanager
def page(title: str, summary: str) -> Iterator[None]:
    """Everything a page draws belongs inside: `with page(TITLE, SUMMARY): ...`."""
    st.set_page_config(page_title=f"{title}, Loss Lab", layout="wide")
    # Streamlit's own top padding leaves a third of a projector's picture empty.
    st.html("<style>.stMainBlockContainer{padding-top:2.6rem;padding-bottom:2rem}</style>")
    draw_navigation()
    st.title(title, anchor=False)
    st.caption(summary)
    try:
        yield
    except Exception as error:  # the last line of defence: a person never sees a traceback
        show_error(error)
