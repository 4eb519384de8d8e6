"""The share of pairs with a gradient against an option of the loss, with the range that is advised."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lab.figures.palette import NEGATIVE, POSITIVE, QUALITY
from lab.percent import percents

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.advice import Advice


def advice(found: Advice) -> go.Figure:
    """A line over the values looked at; a band from 10 to 60 %, a band over the range, a mark for now."""
    import plotly.graph_objects as go

    from lab.advice import LEAST, MOST

    name = found.title
    known = [
        (value, share)
        for value, share in zip(found.values, found.shares, strict=True)
        if math.isfinite(share)
    ]
    figure = go.Figure()
    if not known:
        figure.update_layout(title=f"Pairs with a gradient by {name}")
        figure.add_annotation(text="No value of this option works with the others.", showarrow=False)
        return figure
    values, shares = zip(*known, strict=True)
    figure.add_scatter(
        x=values,
        y=shares,
        hovertext=percents(shares),
        name="share of pairs",
        mode="lines+markers" if len(known) > 1 else "markers",
        line={"color": POSITIVE},
        hovertemplate=f"{name} %{{x:.3g}}: %{{hovertext}} of the pairs have a gradient<extra></extra>",
    )
    if math.isfinite(found.share):
        figure.add_scatter(
            x=[found.now],
            y=[found.share],
            hovertext=percents([found.share]),
            name="now",
            mode="markers",
            marker={"color": NEGATIVE, "symbol": "diamond", "size": 13},
            hovertemplate=f"now: {name} %{{x:.3g}}, %{{hovertext}}<extra></extra>",
        )
    figure.add_hrect(y0=LEAST, y1=MOST, fillcolor=QUALITY, opacity=0.15, line_width=0)
    if found.range is not None:
        for end in found.range:
            figure.add_vline(x=end, line={"color": QUALITY, "dash": "dash", "width": 1})
    figure.update_layout(
        title=f"Pairs with a gradient by {name}",
        xaxis={"title": name, "type": "log" if is_geometric(values) else "linear"},
        yaxis={"title": "share of pairs", "range": [-0.02, 1.02], "tickformat": ".0%"},
        legend={"orientation": "h", "y": -0.25},
        margin={"l": 10, "r": 10, "t": 50, "b": 10},
        meta={"x": found.option, "y": "share of pairs with a gradient"},
    )
    return figure


def is_geometric(values: tuple[float, ...]) -> bool:
    """Whether the values grow by a factor rather than by a sum."""
    if len(values) < 3 or values[0] <= 0:
        return False
    first, last = values[1] / values[0], values[-1] / values[-2]
    return math.isclose(first, last, rel_tol=1e-3) and not math.isclose(first, 1.0, rel_tol=1e-9)
