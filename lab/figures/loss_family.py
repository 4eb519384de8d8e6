"""A family of curves: one sliding pair under several values of one option."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.anatomy.family import LOSS, quantity
from lab.figures.axis_title import axis_title

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.anatomy.family import Family

# Viridis keeps its order for every kind of colour vision; the end near the page's ground is left out.
ON_LIGHT, ON_DARK = (0.0, 0.82), (0.3, 1.0)


def loss_family(family: Family, what: str = LOSS, dark: bool = False) -> go.Figure:
    """The positive pair above, the negative below; the current value's curve is drawn thick.

    Args:
        family: of `lab.anatomy.family`.
        what: one of `lab.anatomy.family.QUANTITIES`.
        dark: whether the page is dark.
    """
    from plotly.colors import sample_colorscale
    from plotly.subplots import make_subplots

    figure = make_subplots(
        2, 1, shared_xaxes=True, vertical_spacing=0.12, subplot_titles=("positive pair", "negative pair")
    )
    low, high = ON_DARK if dark else ON_LIGHT
    steps = max(len(family.members) - 1, 1)
    for place, member in enumerate(family.members):
        colour = sample_colorscale("Viridis", [low + (high - low) * place / steps])[0]
        for row, side in enumerate(member.sides.values(), start=1):
            figure.add_scatter(
                x=side.at,
                y=quantity(side, what),
                mode="lines",
                name=f"{member.text} (current)" if member.current else member.text,
                legendgroup=member.text,
                showlegend=row == 1,
                line={
                    "color": colour,
                    "width": 4 if member.current else 1.8,
                    "dash": "solid" if member.current else ("dash", "dot", "dashdot")[place % 3],
                },
                zorder=0 if member.current else 1,  # the wide line would hide those it falls together with
                hovertemplate=f"{member.text}: {what} %{{y:.4g}} at %{{x:.3f}}<extra></extra>",
                row=row,
                col=1,
            )
    figure.update_xaxes(title=axis_title(family.axis, family.inverted), row=2, col=1)
    figure.update_yaxes(title=what)
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        legend={"title": {"text": family.param.title}, "itemsizing": "trace"},
        showlegend=True,
    )
    if not family.members:
        figure.add_annotation(text="The loss refuses every value.", showarrow=False)
    return figure
