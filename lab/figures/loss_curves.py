"""A loss's value and gradient against the distance of one sliding pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.figures.palette import NEGATIVE, POSITIVE

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.curves import LossCurves

STYLES = {
    "positive": {"color": POSITIVE, "dash": "solid", "symbol": "circle"},
    "negative": {"color": NEGATIVE, "dash": "dash", "symbol": "square"},
}


def loss_curves(curves: LossCurves) -> go.Figure:
    """Value above, gradient below, on one axis; where a side rests is shaded in its colour.

    Args:
        curves: of `lab.curves.loss_curves`. Without curves the figure holds their sentence.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, vertical_spacing=0.08)
    for curve in curves.curves:
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
        for low, high in curve.dead:
            figure.add_vrect(
                x0=low, x1=high, fillcolor=style["color"], opacity=0.12, line_width=0, layer="below"
            )
    closer = "larger" if curves.inverted else "smaller"
    figure.update_xaxes(title=f"{curves.axis} ({closer} is closer)", row=2, col=1)
    figure.update_yaxes(title="loss", row=1, col=1)
    figure.update_yaxes(title="gradient", row=2, col=1)
    for mark in curves.marks if curves.curves else ():
        figure.add_vline(x=mark.value, line_dash="dot", line_width=1, line_color="#8A8A8A")
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text=curves.held, showarrow=False)
    return figure
