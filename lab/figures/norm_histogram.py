"""The norms of embeddings, beside the norm that their output normalisation gives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from lab.figures.palette import COLOURS, COLOURS_IN_DARK, REFERENCE
from lab.figures.tool_bar import ABOVE, title_under
from lab.percent import percents
from lab.short import short

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.norms import NormLesson

BINS = 40


def expected_norm(output: str, size: int) -> float | None:
    """The norm an output normalisation gives: 1 for L2, the root of the size for the other two."""
    return {"l2": 1.0, "layernorm": math.sqrt(size), "batchnorm": math.sqrt(size)}.get(output)


def norm_histogram(
    lesson: NormLesson, output: str = "", title: str = "Norms of the embeddings", dark: bool = False
) -> go.Figure:
    """Share of embeddings by norm, from 0 on, so that a narrow distribution looks narrow.

    Args:
        lesson: of `lab.norms.norm_lesson`.
        output: the encoder's output normalisation, "" when unknown.
        title: of the figure.
        dark: colours for a dark background.
    """
    import plotly.graph_objects as go

    expected = expected_norm(output, lesson.size)
    top = 1.1 * max(float(lesson.norms.max()), expected or 0.0) or 1.0
    counts, edges = np.histogram(lesson.norms, BINS, (0.0, top))
    figure = go.Figure()
    figure.add_bar(
        x=(edges[:-1] + edges[1:]) / 2,
        y=counts / len(lesson.norms),
        hovertext=percents(counts / len(lesson.norms)),
        width=top / BINS,
        name="embeddings",
        marker={"color": (COLOURS_IN_DARK if dark else COLOURS)[0]},
        hovertemplate="%{hovertext} with a norm near %{x:.3f}<extra></extra>",
    )
    if expected is not None:
        formula = "1" if output == "l2" else f"√{lesson.size} = {short(expected)}"
        figure.add_vline(
            x=expected,
            line_dash="dash",
            line_color=REFERENCE,
            annotation_text=formula,
            annotation_position="top left",
        )
    figure.update_layout(
        title=title_under(title),
        xaxis={"title": "norm (length of the embedding)", "range": [0, top]},
        yaxis={"title": "share of embeddings", "tickformat": ".0%"},
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        showlegend=False,
        meta={"x": "norm", "y": "share of embeddings"},
    )
    return figure
