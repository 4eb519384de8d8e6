"""The maps of several runs side by side at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.brief import brief
from lab.figures.literal import in_lines, literal
from lab.figures.palette import COLOURS, class_style

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray


def compared_maps(
    maps: Sequence[NDArray[np.floating[Any]]],
    classes: NDArray[np.integer[Any]],
    class_names: Sequence[str],
    names: Sequence[str],
    samples: NDArray[np.integer[Any]] | None = None,
    colours: Sequence[str] = COLOURS,
) -> go.Figure:
    """One map a run, equal scale on both axes of each; a class has one colour and symbol in all of them.

    Args:
        maps: positions of the same N samples in each run, (N, 2).
        classes: (N,), numbers into `class_names`.
        class_names: C names.
        names: of the runs.
        samples: (N,) numbers shown on hover; 0 to N - 1 when None.
        colours: of the classes.
    """
    from plotly.subplots import make_subplots

    shown = [literal(name) for name in brief(class_names)]
    numbers = np.arange(len(classes)) if samples is None else samples
    figure = make_subplots(
        rows=1, cols=max(len(maps), 1), subplot_titles=list(names), horizontal_spacing=0.04
    )
    for column, positions in enumerate(maps, start=1):
        for c, name in enumerate(shown):
            mine = np.flatnonzero(classes == c)
            if len(mine) == 0:
                continue
            style = {**class_style(c), "color": colours[c % len(colours)]}
            figure.add_scatter(
                x=positions[mine, 0],
                y=positions[mine, 1],
                mode="markers",
                name=name,
                legendgroup=name,
                meta=class_names[c],
                showlegend=column == 1,
                marker={"size": 5, **style},
                customdata=numbers[mine],
                hovertemplate=f"class {in_lines(class_names[c])}, sample %{{customdata}}<extra></extra>",
                row=1,
                col=column,
            )
        figure.update_yaxes(scaleanchor=f"x{column if column > 1 else ''}", row=1, col=column)
    figure.update_xaxes(showticklabels=False, zeroline=False, constrain="domain")
    figure.update_yaxes(showticklabels=False, zeroline=False, constrain="domain")
    figure.update_layout(
        margin={"l": 5, "r": 5, "t": 30, "b": 5},
        legend={"orientation": "h", "y": -0.02, "yanchor": "top", "itemsizing": "constant"},
        showlegend=True,
    )
    if not figure.data:
        figure.add_annotation(text="There are no points to show.", showarrow=False)
    return figure
