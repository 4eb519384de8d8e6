"""Distances of positive and negative pairs at one moment, with the loss's marks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.figures.axis_title import axis_title
from lab.figures.palette import COLOURS, COLOURS_IN_DARK, REFERENCE
from lab.figures.tool_bar import ABOVE, BELOW, title_under
from lab.percent import percents
from lab.short import short

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from lab.frame import Histogram
    from losslib.types import Mark

NAMED = 1.2  # height over the tallest bar where lines have their names above the bars


def pair_distances(
    histogram: Histogram,
    marks: Sequence[Mark] = (),
    distance: str = "distance",
    inverted: bool = False,
    title: str = "Distances of pairs",
    dark: bool = False,
) -> go.Figure:
    """Shares of positive and negative pairs over the loss's own distance, with the loss's marks.

    A threshold is a vertical line; a gap a line from the mean positive to where a negative has to be; a
    temperature the weight of a negative over the axis, its largest value as high as the tallest bar.

    Args:
        histogram: counts in bins of equal width.
        marks: what the loss wants drawn.
        distance: the distance in words, the axis title.
        inverted: whether larger is closer.
        title: of the figure.
        dark: colours for a dark background.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    colours = COLOURS_IN_DARK if dark else COLOURS
    bins = len(histogram.positive)
    edges = np.linspace(histogram.low, histogram.high, bins + 1)
    centres, width = (edges[:-1] + edges[1:]) / 2, (histogram.high - histogram.low) / max(bins, 1)
    for name, counts, colour, pattern in (
        ("positive pairs", histogram.positive, colours[0], ""),
        ("negative pairs", histogram.negative, colours[4], "/"),
    ):
        total = int(np.sum(counts))
        if total:
            figure.add_bar(
                x=centres,
                y=np.asarray(counts) / total,
                hovertext=percents(np.asarray(counts) / total),
                width=width,
                name=f"{name} ({total:,})",
                marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 6}},
                opacity=0.65,
                hovertemplate=f"{name}: %{{hovertext}} at %{{x:.3f}}<extra></extra>",
            )
    drawn = [mark for mark in marks if math.isfinite(mark.value)] if figure.data else []
    tallest = max((max(bar.y) for bar in figure.data), default=0.0)
    for mark in drawn:
        draw_mark(figure, mark, histogram, centres, inverted)
    figure.update_layout(
        title=title_under(title),
        barmode="overlay",
        xaxis={
            "title": axis_title(distance, inverted),
            "range": [histogram.low, histogram.high],
        },
        yaxis={"title": "share of pairs", "tickformat": ".0%"}
        | ({"range": [0, NAMED * tallest]} if any(mark.kind == "line" for mark in drawn) else {}),
        legend=BELOW,
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        showlegend=True,
        meta={"x": distance, "y": "share of pairs"},
    )
    if not figure.data:
        figure.add_annotation(text="There are no pairs to measure.", showarrow=False)
    return figure


def draw_mark(
    figure: go.Figure, mark: Mark, histogram: Histogram, centres: NDArray[np.floating[Any]], inverted: bool
) -> None:
    """One mark, by its kind."""
    text = f"{mark.label} {short(mark.value)}"
    top = max(max(bar.y) for bar in figure.data if bar.type == "bar")
    line = {"color": REFERENCE, "width": 2}
    if mark.kind == "line":
        side = "left" if mark.value > (histogram.low + histogram.high) / 2 else "right"
        figure.add_vline(
            x=mark.value,
            line_dash="dash",
            line_color=REFERENCE,
            annotation_text=text,
            annotation_position=f"top {side}",
        )
    elif mark.kind == "gap" and np.sum(histogram.positive):
        start = float(np.average(centres, weights=histogram.positive))
        end = start - mark.value if inverted else start + mark.value
        ticks = {"symbol": "line-ns", "size": 12, "line": line}
        figure.add_scatter(
            x=[start, end],
            y=[1.05 * top] * 2,
            mode="lines+markers",
            line=line,
            marker=ticks,
            name=f"{text}, from the mean positive",
        )
    elif mark.kind == "temperature" and mark.value > 0:
        closest = centres.max() if inverted else centres.min()
        weight = np.exp(-np.abs(closest - centres) / mark.value)
        figure.add_scatter(
            x=centres,
            y=top * weight,
            text=[f"{share:.3g}" for share in weight],
            mode="lines",
            line={**line, "dash": "dot"},
            name=f"{text}: weight of a negative",
            hovertemplate="%{text} of the closest one's weight at %{x:.3f}<extra></extra>",
        )
