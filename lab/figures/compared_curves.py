"""Measures of several runs over the steps, one small chart a measure, the runs overlaid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.figures.palette import COLOURS

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from lab.compare.measures import Measure

LINES = ((0, "solid"), (4, "dash"), (2, "dot"), (3, "dashdot"))


def compared_curves(
    curves: Sequence[Mapping[str, NDArray[np.floating[Any]]]],
    names: Sequence[str],
    measures: Sequence[Measure],
    step: int | None = None,
    columns: int = 2,
    colours: Sequence[str] = COLOURS,
) -> go.Figure:
    """A run has one colour and one dash in all charts.

    Args:
        curves: of each run, "step" and every measure's name, (F,) each; NaN where it was not computed.
        names: of the runs.
        measures: what is drawn, in order.
        step: where a vertical line stands.
        columns: charts side by side.
        colours: ten or more.
    """
    from plotly.subplots import make_subplots

    rows = -(-len(measures) // columns)
    figure = make_subplots(
        rows=rows,
        cols=columns,
        subplot_titles=[
            f"{one.title}<br><sup>{one.better + ' is better' if one.better else one.reference}</sup>"
            for one in measures
        ],
        vertical_spacing=0.42 / max(rows, 1),
        horizontal_spacing=0.1,
    )
    for place, measure in enumerate(measures):
        row, column = place // columns + 1, place % columns + 1
        for run, name, (colour, dash) in zip(curves, names, LINES, strict=False):
            known = np.isfinite(run[measure.name])
            if known.any():
                figure.add_scatter(
                    x=run["step"][known],
                    y=run[measure.name][known],
                    name=name,
                    legendgroup=name,
                    showlegend=place == 0,
                    mode="lines" if known.sum() > 1 else "markers",
                    line={"color": colours[colour], "dash": dash, "width": 2},
                    hovertemplate=f"{name}: %{{y:.4g}} at step %{{x}}<extra></extra>",
                    row=row,
                    col=column,
                )
        if measure.share:
            figure.update_yaxes(range=[0, 1.02], row=row, col=column)
    if step is not None and figure.data:
        # one assignment instead of a call a chart, each of which takes 30 ms
        axes = [str(place + 1) if place else "" for place in range(len(measures))]
        line = {"type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "line": {"dash": "dot", "width": 1}}
        figure.update_layout(shapes=[{**line, "xref": f"x{n}", "yref": f"y{n} domain"} for n in axes])
    figure.update_xaxes(title="step", row=rows)
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        legend={"orientation": "h", "y": 1.0, "yref": "container", "yanchor": "top"},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text="There are no steps yet.", showarrow=False)
    return figure
