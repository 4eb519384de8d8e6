"""The map of embeddings at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.figures.palette import class_style

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray


def embedding_map(
    positions: NDArray[np.floating[Any]],
    classes: NDArray[np.integer[Any]],
    class_names: Sequence[str],
    samples: NDArray[np.integer[Any]] | None = None,
) -> go.Figure:
    """One trace a class, equal scale on both axes, the sample's number on hover.

    Args:
        positions: (N, 2).
        classes: (N,), numbers into `class_names`.
        class_names: C names.
        samples: (N,) numbers shown on hover; 0 to N - 1 when None.
    """
    import plotly.graph_objects as go

    numbers = np.arange(len(positions)) if samples is None else samples
    figure = go.Figure()
    for c, name in enumerate(class_names):
        mine = np.flatnonzero(classes == c)
        if len(mine) == 0:
            continue
        figure.add_scatter(
            x=positions[mine, 0],
            y=positions[mine, 1],
            mode="markers",
            name=name,
            marker={"size": 6, **class_style(c)},
            customdata=numbers[mine],
            hovertemplate=f"class {name}, sample %{{customdata}}<br>(%{{x:.3f}}, %{{y:.3f}})<extra></extra>",
        )
    figure.update_layout(
        xaxis={"title": "first coordinate of the map"},
        yaxis={"title": "second coordinate of the map", "scaleanchor": "x"},
        legend={"title": "class", "itemsizing": "constant"},
        margin={"l": 10, "r": 10, "t": 20, "b": 10},
        showlegend=True,
    )
    if not len(positions):
        figure.add_annotation(text="There are no points to show.", showarrow=False)
    return figure
