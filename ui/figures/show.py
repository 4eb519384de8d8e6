"""One figure on the page: the chart, what it says in words, and itself to take home."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from lab.figures.take_home import as_csv, as_html

if TYPE_CHECKING:
    import plotly.graph_objects as go

SAVE = "HTML opens anywhere, without a network. PNG: the camera in the corner of the figure."


def is_dark() -> bool:
    """Whether the page has a dark background."""
    return st.context.theme.type == "dark"


def show(figure: go.Figure, words: str, name: str, file: str, height: int = 400, choose: bool = False) -> Any:
    """Draws a figure with its summary under it.

    Args:
        figure: with a title, or under a heading of the page.
        words: its summary.
        name: unique on the page; the chart's key.
        file: what saved files are called, without an ending.
        height: in pixels.
        choose: whether points can be chosen; then the page runs again with the choice, which is returned.
    """
    options: dict[str, Any] = {"on_select": "rerun"} if choose else {}
    title = figure.layout.title.text
    told = f"{title}. {words}" if title else words
    state = st.plotly_chart(figure, key=f"figure {name}", height=height, alt=told, **options)
    with st.container(horizontal=True, wrap=False):
        st.markdown(words, width="stretch")
        save(figure, name, file)
    return state if choose else None


def save(figure: go.Figure, name: str, file: str) -> None:
    """What is under Save, for a figure that the page draws itself; see `show`."""
    with st.popover("Save", type="tertiary", help="This figure as a page, or its data as a table"):
        st.caption(SAVE)
        take_home(figure, name, file)


def take_home(figure: go.Figure, name: str, file: str) -> None:
    """Two downloads, made when somebody asks for them."""
    kinds = [("html", as_html, "text/html")]
    if all(trace.type not in {"contour", "heatmap"} for trace in figure.data):
        kinds.append(("csv", as_csv, "text/csv"))  # a field over the plane is no table
    for ending, make, mime in kinds:
        st.download_button(
            ending.upper(),
            partial(make, figure),
            f"losslab-{file}.{ending}",
            mime,
            key=f"save {name} {ending}",
            on_click="ignore",
        )
