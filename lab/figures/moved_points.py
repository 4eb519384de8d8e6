"""Who ended where: the places of the samples that moved most between two aligned maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab.figures.literal import in_lines
from lab.figures.palette import COLOURS, class_style

if TYPE_CHECKING:
    import numpy as np
    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from lab.compare.moved import Moved

SIDES = ("top center", "middle right", "bottom center", "middle left")


def moved_points(
    first: NDArray[np.floating[Any]],
    second: NDArray[np.floating[Any]],
    found: Sequence[Moved],
    class_names: Sequence[str],
    names: tuple[str, str] = ("A", "B"),
    colours: Sequence[str] = COLOURS,
) -> go.Figure:
    """Both maps faint, and a line with a number from the first to the second place of each mover.

    Args:
        first: map of the first run, (N, 2).
        second: the other, aligned to it, (N, 2).
        found: the movers, furthest first.
        class_names: C names.
        names: of the two runs.
        colours: of the classes.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for points, name, symbol in ((first, names[0], "circle"), (second, names[1], "circle-open")):
        if len(points):
            figure.add_scatter(
                x=points[:, 0],
                y=points[:, 1],
                mode="markers",
                name=name,
                hoverinfo="skip",
                marker={"size": 4, "color": "#8A8A8A", "symbol": symbol, "opacity": 0.5},
            )
    for rank, one in enumerate(found, start=1):
        ends = [(points[one.place, 0], points[one.place, 1]) for points in (first, second)]
        colour = colours[one.label % len(colours)]
        figure.add_scatter(
            x=[x for x, _ in ends],
            y=[y for _, y in ends],
            mode="lines+markers+text",
            text=["", str(rank)],
            textposition=SIDES[rank % len(SIDES)],  # movers often lie side by side
            line={"color": colour, "width": 1.5},
            marker={"size": 8, "color": colour, "symbol": [class_style(one.label)["symbol"], "diamond-open"]},
            showlegend=False,
            hovertemplate=(
                f"{rank}: class {in_lines(class_names[one.label])}, sample {one.sample}, "
                f"moved {one.distance:.2f}<extra></extra>"
            ),
        )
    figure.update_xaxes(showticklabels=False, zeroline=False)
    figure.update_yaxes(showticklabels=False, zeroline=False, scaleanchor="x")
    figure.update_layout(
        margin={"l": 5, "r": 5, "t": 20, "b": 5},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top", "itemsizing": "constant"},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text="There are no points to show.", showarrow=False)
    return figure
