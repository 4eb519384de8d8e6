"""A loss's value and gradient against the distance of one sliding pair, and where a batch's pairs stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from lab.figures.axis_title import axis_title
from lab.figures.palette import NEGATIVE, POSITIVE
from lab.figures.tool_bar import ABOVE

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.anatomy.slides import Along
    from lab.curves import Curve, LossCurves

STYLES = {
    "positive": {"color": POSITIVE, "dash": "solid", "symbol": "circle"},
    "negative": {"color": NEGATIVE, "dash": "dash", "symbol": "square"},
}
GREY = "#8A8A8A"


def loss_curves(curves: LossCurves, here: Mapping[str, Along] | None = None) -> go.Figure:
    """Value above, gradient below, on one axis; where a side rests is shaded in its colour.

    Args:
        curves: of `lab.curves`. Without curves the figure holds their sentence.
        here: for each side the place of the slid pair, to be marked.
    """
    from plotly.subplots import make_subplots

    rows = 2 if curves.rug is None else 3
    heights = [0.5, 0.5] if rows == 2 else [0.48, 0.4, 0.12]
    figure = make_subplots(rows, 1, shared_xaxes=True, vertical_spacing=0.07, row_heights=heights)
    for curve in curves.curves:
        _draw(figure, curve, None if here is None else here.get(curve.side))
    if curves.rug is not None:
        _rug(figure, curves)
    figure.update_xaxes(title=axis_title(curves.axis, curves.inverted), row=rows, col=1)
    figure.update_yaxes(title="loss", row=1, col=1)
    figure.update_yaxes(title="gradient", row=2, col=1)
    for mark in curves.marks if curves.curves else ():
        figure.add_vline(x=mark.value, line_dash="dot", line_width=1, line_color=GREY)
    own = {mark.value: mark for mark in curves.marks if curves.curves}
    for place, mark in enumerate(own.values()):
        figure.add_annotation(
            x=mark.value,
            y=1,
            yref=("y2 domain", "y domain")[place % 2],  # two thresholds may stand close together
            text=mark.label,
            showarrow=False,
            xanchor="left" if mark.value <= _middle(curves) else "right",
            yanchor="bottom",
            font={"size": 10, "color": GREY},
        )
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text=curves.held, showarrow=False)
    return figure


def _middle(curves: LossCurves) -> float:
    return float(curves.curves[0].at[[0, -1]].mean())


def _draw(figure: go.Figure, curve: Curve, here: Along | None) -> None:
    """One side: both lines, its dead zones, its marked place."""
    style = STYLES[curve.side]
    mode = "lines" if len(curve.at) > 1 else "markers"
    for row, (what, numbers) in enumerate((("loss", curve.value), ("gradient", curve.slope)), start=1):
        figure.add_scatter(
            x=curve.at,
            y=numbers,
            mode=mode,
            name=f"{curve.side} pair",
            legendgroup=curve.side,
            showlegend=row == 1,
            line={"color": style["color"], "dash": style["dash"]},
            marker={"color": style["color"], "symbol": style["symbol"]},
            hovertemplate=f"{curve.side} pair: {what} %{{y:.4g}} at %{{x:.3f}}<extra></extra>",
            row=row,
            col=1,
        )
        if here is not None:
            _mark(figure, style, here.at, here[row], f"slid {curve.side} pair: {what}", row, 12)
        if curve.start is not None:
            there = np.interp([curve.start], curve.at, numbers)
            said = f"the {curve.side} pair's own place in the batch: {what}"
            _mark(figure, {**style, "symbol": "x-thin"}, [curve.start], there, said, row, 10)
    for low, high in curve.dead:
        figure.add_vrect(x0=low, x1=high, fillcolor=style["color"], opacity=0.12, line_width=0, layer="below")


def _mark(
    figure: go.Figure, style: dict[str, str], x: object, y: object, said: str, row: int, size: int
) -> None:
    figure.add_scatter(
        x=x,
        y=y,
        mode="markers",
        showlegend=False,
        name=said,
        marker={
            "color": style["color"],
            "symbol": style["symbol"],
            "size": size,
            "line": {"width": 2, "color": style["color"] if style["symbol"] == "x-thin" else "#FFFFFF"},
        },
        hovertemplate=f"{said} %{{y:.4g}} at %{{x:.3f}}<extra></extra>",
        row=row,
        col=1,
    )


def _rug(figure: go.Figure, curves: LossCurves) -> None:
    """One tick for each pair of the batch, positives above negatives."""
    assert curves.rug is not None
    for side, values in (("positive", curves.rug.positive), ("negative", curves.rug.negative)):
        figure.add_scatter(
            x=values,
            y=[side] * len(values),
            mode="markers",
            name=f"{side} pairs of the batch",
            showlegend=False,
            marker={
                "symbol": "line-ns",
                "size": 9,
                "opacity": 0.55,
                "line": {"width": 1, "color": STYLES[side]["color"]},
            },
            hovertemplate=f"{side} pair of the batch at %{{x:.3f}}<extra></extra>",
            row=3,
            col=1,
        )
    figure.update_yaxes(
        title="batch",
        type="category",
        categoryorder="array",
        categoryarray=["negative", "positive"],
        tickvals=["negative", "positive"],
        ticktext=["neg", "pos"],
        showgrid=False,
        row=3,
        col=1,
    )
