"""A figure to take home: the data behind it as CSV, and itself as a page that works without a network."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import plotly.graph_objects as go


def as_csv(figure: go.Figure) -> str:
    """Every drawn point, one a row: its series, its coordinates and what it shows on hover.

    Names of columns come from the figure's `meta`: "x", "y" and "z" for coordinates, "columns" for the rest.
    """
    meta: dict[str, Any] = figure.layout.meta or {}
    axes = [axis for axis in "xyz" if any(getattr(trace, axis, None) is not None for trace in figure.data)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["series", *(meta.get(axis, axis) for axis in axes), *meta.get("columns", ())])
    for trace in figure.data:
        columns = [getattr(trace, axis) for axis in axes]
        name = trace.meta or html.unescape(trace.name or "")  # whole, where the legend has it cut
        name = f"{panel}: {name}" if (panel := panel_of(figure, trace)) else name
        writer.writerows(rows(name, columns, trace.customdata))
    return out.getvalue()


def panel_of(figure: go.Figure, trace: Any) -> str:
    """The title of the panel that a trace is drawn in, "" where there is one panel only."""
    numbers = [int((one.xaxis or "x")[1:] or 1) for one in figure.data if hasattr(one, "xaxis")]
    titles = [note.text for note in figure.layout.annotations if note.showarrow is False]
    number = int((getattr(trace, "xaxis", None) or "x")[1:] or 1)
    return str(titles[number - 1]) if max(numbers, default=1) > 1 and number <= len(titles) else ""


def rows(name: str, columns: list[Any], extra: Any) -> Iterator[list[Any]]:
    """One list a point."""
    for i, point in enumerate(zip(*columns, strict=True)):
        if None in point:
            continue  # an entry of the legend
        yield [name, *map(plain, point), *map(plain, () if extra is None else np.ravel(extra[i]))]


def plain(value: Any) -> Any:
    """Numbers as people write them, with nine digits at most; texts as they were before `literal`."""
    if isinstance(value, str):
        return html.unescape(value)
    return f"{value:.9g}" if isinstance(value, float | np.floating) else value


def as_html(figure: go.Figure) -> str:
    """A page of its own with all of Plotly in it, 4.7 MB, that opens anywhere."""
    text: str = standing_alone(figure).to_html(include_plotlyjs=True, full_html=True)
    return text


def standing_alone(figure: go.Figure) -> go.Figure:
    """A copy for a page without the app's theme, which else makes room for the labels of the axes."""
    import plotly.graph_objects as go

    found = go.Figure(figure)
    found.update_xaxes(automargin=True)
    found.update_yaxes(automargin=True)
    return found
