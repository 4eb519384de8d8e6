"""How many true neighbours a map keeps, beside what a random map keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lab.figures.palette import QUALITY, REFERENCE
from lab.figures.tool_bar import ABOVE, title_under
from lab.percent import percent, percents

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.neighbours import Neighbourhoods


def neighbours_kept(both: Neighbourhoods, k: int, title: str = "Neighbours the map keeps") -> go.Figure:
    """Mean share of the k true nearest neighbours that are among the k nearest on the map, over k.

    Args:
        both: ranks among the embeddings and on the map.
        k: the number of neighbours marked on the curve.
        title: of the figure.
    """
    import plotly.graph_objects as go

    ks, kept, chance = np.arange(1, both.count), both.kept(), both.chance()
    figure = go.Figure()
    figure.add_scatter(
        x=ks,
        y=kept,
        hovertext=percents(kept),
        mode="lines",
        name="kept",
        line={"color": QUALITY},
        hovertemplate="of %{x} neighbours %{hovertext} are kept<extra></extra>",
    )
    figure.add_scatter(
        x=ks,
        y=chance,
        hovertext=percents(chance),
        mode="lines",
        name="chance: points thrown at random",
        line={"color": REFERENCE, "dash": "dot"},
        hovertemplate="chance keeps %{hovertext} of %{x}<extra></extra>",
    )
    figure.add_scatter(
        x=[k],
        y=[kept[k - 1]],
        hovertext=percents([kept[k - 1]]),
        mode="markers+text",
        name=f"k = {k}",
        text=[percent(kept[k - 1], 0)],
        textposition="bottom center" if kept[k - 1] > 0.85 else "top center",
        marker={"color": QUALITY, "size": 11, "symbol": "diamond"},
        hovertemplate="k = %{x}: %{hovertext}<extra></extra>",
    )
    figure.update_layout(
        title=title_under(title),
        xaxis={"title": "number of neighbours k", "type": "log"},
        yaxis={"title": "share kept", "range": [0, 1.05], "tickformat": ".0%"},
        legend={"orientation": "h", "y": -0.25},
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        showlegend=True,
        meta={"x": "neighbours", "y": "share kept"},
    )
    return figure
