"""Distances of positive and negative pairs at one moment, with the loss's marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lab.figures.palette import COLOURS, COLOURS_IN_DARK, REFERENCE

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.frame import Histogram
    from losslib.types import Mark


def pair_distances(
    histogram: Histogram,
    marks: Sequence[Mark] = (),
    distance: str = "distance",
    inverted: bool = False,
    title: str = "Distances of pairs",
    dark: bool = False,
) -> go.Figure:
    """Shares of positive and negative pairs over the loss's own distance; thresholds as vertical lines.

    Args:
        histogram: counts in bins of equal width.
        marks: what the loss wants drawn; only thresholds are.
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
                width=width,
                name=f"{name} ({total:,})",
                marker={"color": colour, "pattern": {"shape": pattern, "fillmode": "overlay", "size": 6}},
                opacity=0.65,
                hovertemplate=f"{name}: %{{y:.1%}} at %{{x:.3f}}<extra></extra>",
            )
    middle = (histogram.low + histogram.high) / 2
    for mark in marks:
        if mark.kind == "line":
            figure.add_vline(
                x=mark.value,
                line_dash="dash",
                line_color=REFERENCE,
                annotation_text=f"{mark.label} {mark.value:.3g}",
                annotation_position="top left" if mark.value > middle else "top right",
            )
    figure.update_layout(
        title=title,
        barmode="overlay",
        xaxis={
            "title": f"{distance}<br>({'larger' if inverted else 'smaller'} is closer)",
            "range": [histogram.low, histogram.high],
        },
        yaxis={"title": "share of pairs", "tickformat": ".0%"},
        legend={"orientation": "h", "y": -0.3},
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        showlegend=True,
        meta={"x": distance, "y": "share of pairs"},
    )
    if not figure.data:
        figure.add_annotation(text="There are no pairs to measure.", showarrow=False)
    return figure
