"""Loss and quality over the steps of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.figures.palette import POSITIVE, QUALITY, REFERENCE

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

LINES = (
    ("loss", "loss", 1, {"color": POSITIVE}),
    ("recall_at_1", "recall@1", 2, {"color": QUALITY}),
    ("map_at_r", "MAP@R", 2, {"color": QUALITY, "dash": "dash"}),
)


def learning_curves(
    curves: Mapping[str, NDArray[np.floating[Any]]],
    chance: float | None = None,
    step: int | None = None,
    quality_on: str = "held-out data",
) -> go.Figure:
    """The loss on its own scale above recall@1 and MAP@R between 0 and 1.

    Args:
        curves: "step", "loss", "recall_at_1" and "map_at_r", (F,) each; NaN where it was not computed.
        chance: recall@1 of a random map, drawn as a dotted line when given.
        step: the moment shown, drawn as a vertical line when given.
        quality_on: what quality is measured on.
    """
    from plotly.subplots import make_subplots

    titles = ("Loss of the batch", f"Quality on {quality_on}")
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, subplot_titles=titles, vertical_spacing=0.13)
    for key, name, row, line in LINES:
        known = np.isfinite(curves[key])
        if known.any():
            figure.add_scatter(
                x=curves["step"][known],
                y=curves[key][known],
                name=name,
                mode="lines" if known.sum() > 1 else "markers",
                line=line,
                marker={"color": line["color"]},
                hovertemplate=f"step %{{x}}: {name} %{{y:.4g}}<extra></extra>",
                row=row,
                col=1,
            )
    if chance is not None:
        figure.add_hline(
            y=chance, line_dash="dot", line_color=REFERENCE, annotation_text="chance", row=2, col=1
        )
    if step is not None and figure.data:
        for row in (1, 2):
            figure.add_vline(x=step, line_dash="dash", line_color=REFERENCE, row=row, col=1)
    figure.update_xaxes(title="step", row=2, col=1)
    figure.update_yaxes(range=[0, 1], row=2, col=1)
    figure.update_layout(
        title="Loss and quality over the run",
        legend={"orientation": "h", "y": -0.15},
        margin={"l": 10, "r": 10, "t": 80, "b": 10},
        showlegend=True,
        meta={"x": "step", "y": "value"},
    )
    if not figure.data:
        figure.add_annotation(text="There are no steps yet.", showarrow=False)
    return figure
