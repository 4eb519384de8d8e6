"""The settings of a sweep in order of quality, with their spread over seeds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab.figures.palette import COLOURS
from lab.figures.tool_bar import ABOVE

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.sweep.ranking import Ranked

ROW, LINE = 34, 16  # pixels of a setting, and of a line of its label
WIDTH = 32  # characters of a line, so that the chart keeps its room on a narrow page
KINDS = (("recall", "recall@1", 0, "circle"), ("map_at_r", "MAP@R", 4, "diamond"))


def sweep_ranking(
    ranked: Sequence[Ranked], chance: float | None = None, colours: Sequence[str] = COLOURS
) -> go.Figure:
    """A dot at the mean and a bar from the least to the largest seed; the best setting on top.

    Args:
        ranked: best first.
        chance: recall@1 of a guess, a dotted line when given.
        colours: ten or more.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for kind, title, colour, symbol in KINDS:
        known = [one for one in ranked if math.isfinite(getattr(one, kind).mean)]
        spreads = [getattr(one, kind) for one in known]
        if not known:
            continue
        figure.add_scatter(
            x=[spread.mean for spread in spreads],
            y=[one.label for one in known],
            mode="markers",
            name=title,
            marker={"color": colours[colour], "symbol": symbol, "size": 10},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [spread.high - spread.mean for spread in spreads],
                "arrayminus": [spread.mean - spread.low for spread in spreads],
            },
            customdata=[[spread.low, spread.high] for spread in spreads],
            hovertemplate=(
                f"{title} %{{x:.3f}} (%{{customdata[0]:.3f}} to %{{customdata[1]:.3f}} over seeds)"
                "<extra>%{y}</extra>"
            ),
        )
    if not figure.data:
        figure.add_annotation(text="No run has ended yet.", showarrow=False)
        return figure
    if chance is not None:
        figure.add_vline(
            x=chance,
            line_dash="dot",
            line_color="#8A8A8A",
            annotation_text="chance",
            annotation_position="bottom right",
        )
    labels = [one.label for one in reversed(ranked)]
    told = [broken(label) for label in labels]
    row = max(ROW, 2 + LINE * max(text.count("<br>") + 1 for text in told))
    figure.update_layout(
        xaxis={"title": "quality at the last step", "range": [0, 1.02]},
        yaxis={
            "categoryorder": "array",
            "categoryarray": labels,
            "tickvals": labels,
            "ticktext": told,
            "range": [-1.1, len(ranked) - 0.5],  # the last row leaves room for the word on the dotted line
        },
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        height=100 + ABOVE + row * len(ranked),
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        showlegend=True,
    )
    return figure


def broken(label: str) -> str:
    """A label in lines, which end between two of its settings."""
    whole = ", ".join(part.replace(" ", "\u00a0") for part in label.split(", "))
    return "<br>".join(textwrap.wrap(whole, WIDTH, break_long_words=False, break_on_hyphens=False))
