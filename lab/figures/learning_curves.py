"""Loss and quality over the steps of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.figures.palette import POSITIVE, QUALITY

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray


def learning_curves(
    curves: Mapping[str, NDArray[np.floating[Any]]], chance: float | None = None
) -> go.Figure:
    """The loss on its own scale beside recall@1 and MAP@R between 0 and 1.

    Args:
        curves: "step", "loss", "recall_at_1" and "map_at_r", (F,) each; NaN where it was not computed.
        chance: recall@1 of a random map, drawn as a dotted line when given.
    """
    from plotly.subplots import make_subplots

    figure = make_subplots(rows=1, cols=2, subplot_titles=("Loss of the batch", "Quality on held-out data"))
    lines = (
        ("loss", "loss", 1, {"color": POSITIVE}),
        ("recall_at_1", "recall@1", 2, {"color": QUALITY}),
        ("map_at_r", "MAP@R", 2, {"color": QUALITY, "dash": "dash"}),
    )
    for key, name, column, line in lines:
        known = np.isfinite(curves[key])
        if known.any():
            steps, values = curves["step"][known], curves[key][known]
            mode = "lines" if len(values) > 1 else "markers"
            figure.add_scatter(
                x=steps,
                y=values,
                name=name,
                mode=mode,
                line=line,
                marker={"color": line["color"]},
                row=1,
                col=column,
            )
    if chance is not None:
        figure.add_hline(y=chance, line_dash="dot", annotation_text="chance", row=1, col=2)
    figure.update_xaxes(title="step")
    figure.update_yaxes(range=[0, 1], row=1, col=2)
    figure.update_layout(margin={"l": 10, "r": 10, "t": 40, "b": 10}, showlegend=True)
    if not figure.data:
        figure.add_annotation(text="There are no steps yet.", showarrow=False)
    return figure
