"""Distances of positive and negative pairs of several runs, each on the axis of its own loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lab.figures.palette import COLOURS
from lab.percent import percents

GREY = "#8A8A8A"  # seen on light and dark

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.frame import Histogram
    from losslib.types import Mark


def compared_distances(
    histograms: Sequence[Histogram],
    names: Sequence[str],
    axes: Sequence[str],
    marks: Sequence[Sequence[Mark]] = (),
    colours: Sequence[str] = COLOURS,
) -> go.Figure:
    """One chart a run; thresholds as vertical lines.

    Args:
        histograms: of the runs, counts in bins of equal width.
        names: of the runs.
        axes: what each measures, with the direction in which pairs are closer.
        marks: of each loss; only thresholds are drawn.
        colours: ten or more; positives have the first, negatives the fifth.
    """
    from plotly.subplots import make_subplots

    columns = max(len(histograms), 1)
    figure = make_subplots(rows=1, cols=columns, subplot_titles=list(names), horizontal_spacing=0.06)
    for column, histogram in enumerate(histograms, start=1):
        bins = len(histogram.positive)
        edges = np.linspace(histogram.low, histogram.high, bins + 1)
        sides = (("positive", histogram.positive, 0), ("negative", histogram.negative, 4))
        for side, counts, colour in sides:
            total = int(np.sum(counts))
            if total:
                figure.add_bar(
                    x=(edges[:-1] + edges[1:]) / 2,
                    y=np.asarray(counts) / total,
                    hovertext=percents(np.asarray(counts) / total),
                    width=(histogram.high - histogram.low) / bins,
                    name=f"{side} pairs",
                    legendgroup=side,
                    showlegend=column == 1,
                    marker={"color": colours[colour], "line_width": 0},
                    opacity=0.7,
                    hovertemplate=f"{side} pairs: %{{hovertext}} at %{{x:.3f}}<extra></extra>",
                    row=1,
                    col=column,
                )
        for mark in marks[column - 1] if len(marks) >= column and figure.data else ():
            if mark.kind == "line":
                figure.add_vline(
                    x=mark.value, line_dash="dash", line_width=1.5, line_color=GREY, row=1, col=column
                )
        figure.update_xaxes(title=axes[column - 1], row=1, col=column)
    figure.update_yaxes(tickformat=".0%")
    figure.update_layout(
        barmode="overlay",
        bargap=0,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"orientation": "h", "y": -0.3, "yanchor": "top"},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text="There are no pairs to measure.", showarrow=False)
    return figure
