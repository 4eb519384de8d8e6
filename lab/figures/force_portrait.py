"""The force portrait: minus the gradient as arrows over the value of the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lab.anatomy.portrait import NAMES, REACH
from lab.figures.palette import COLOURS, SYMBOLS
from lab.figures.tool_bar import ABOVE_TWO

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.anatomy.portrait import Portrait

CLASS_PLACES = (0, 2, 3)  # of the palette: none is the colour of the heat map
HEAT = {False: ((0, "#FFFFFF"), (1, "#EFA64A")), True: ((0, "#12161B"), (1, "#8A5312"))}
INK = {False: "#1B1F24", True: "#E8ECF1"}
EVERY = 2  # each second point of the grid has an arrow
LONGEST, HEAD = 0.21, 0.35  # in the plane's units; the head's share of the arrow
STRONG = 85  # percentile of the forces from which on arrows have full length


def force_portrait(found: Portrait, dark: bool = False) -> go.Figure:
    """Heat map of the loss, arrows of the force, held points by class; dots where nothing pulls.

    Args:
        found: of `lab.anatomy.portrait`.
        dark: whether the page is dark.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    finite = found.value[np.isfinite(found.value)]
    top = float(np.percentile(finite, 98)) if finite.size else 1.0
    figure.add_heatmap(
        x=found.axis,
        y=found.axis,
        z=found.value,
        zmin=float(finite.min()) if finite.size else 0.0,
        zmax=top,
        zsmooth="best",
        colorscale=HEAT[dark],
        colorbar={"title": {"text": "loss", "side": "right"}, "thickness": 10, "len": 0.9},
        hovertemplate="loss %{z:.4g} at (%{x:.2f}, %{y:.2f})<extra></extra>",
        name="loss",
    )
    _forces(figure, found, INK[dark])
    for name, place in zip(NAMES, CLASS_PLACES, strict=True):
        own = found.labels == NAMES.index(name)
        figure.add_scatter(
            x=found.held[own, 0],
            y=found.held[own, 1],
            mode="markers",
            name=f"{name}, own class" if NAMES[found.free] == name else f"class {name}",
            marker={
                "size": 13,
                "color": COLOURS[place],
                "symbol": SYMBOLS[place],
                "line": {"width": 1.5, "color": "#FFFFFF"},
            },
            hovertemplate=f"class {name} at (%{{x:.2f}}, %{{y:.2f}})<extra></extra>",
        )
    reach = [-REACH, REACH]
    figure.update_xaxes(range=reach, constrain="domain", showgrid=False, zeroline=False)
    figure.update_yaxes(range=reach, scaleanchor="x", constrain="domain", showgrid=False, zeroline=False)
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": ABOVE_TWO, "b": 10},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        showlegend=True,
    )
    return figure


def _forces(figure: go.Figure, found: Portrait, ink: str) -> None:
    """Arrows on the plane and, bolder, on the circle; dots where nothing pulls."""
    places = np.stack(np.meshgrid(found.axis, found.axis), -1)[::EVERY, ::EVERY].reshape(-1, 2)
    forces = found.force[::EVERY, ::EVERY].reshape(-1, 2)
    still = found.still[::EVERY, ::EVERY].ravel()
    size = np.linalg.norm(np.concatenate([forces, found.circle_force]), axis=1)
    moving = size[np.isfinite(size) & (size > 1e-9)]
    full = float(np.percentile(moving, STRONG)) if moving.size else 1.0
    if not len(found.circle):
        _arrows(figure, places[~still], forces[~still], full, "force", {"color": ink, "width": 1.3}, 1.0)
    else:
        faint = {"color": ink, "width": 1}
        _arrows(figure, places[~still], forces[~still], full, "force", faint, 0.55)
        ring = np.stack([np.cos(found.circle), np.sin(found.circle)], 1)
        _circle(figure, ink)
        _arrows(
            figure, ring, found.circle_force, full, "force on the circle", {"color": ink, "width": 2.6}, 1.0
        )
    if still.any():
        figure.add_scatter(
            x=places[still, 0],
            y=places[still, 1],
            mode="markers",
            name="no force",
            marker={"size": 3, "color": "#8A8A8A"},
            hovertemplate="no force<extra></extra>",
            showlegend=False,
        )


def _circle(figure: go.Figure, ink: str) -> None:
    figure.add_shape(
        type="circle", x0=-1, y0=-1, x1=1, y1=1, line={"color": ink, "width": 1, "dash": "dot"}, opacity=0.6
    )


def _arrows(
    figure: go.Figure,
    places: NDArray[np.float64],
    forces: NDArray[np.float64],
    full: float,
    name: str,
    line: dict[str, Any],
    opacity: float,
) -> None:
    """All arrows as one line with gaps: shaft, then head."""
    strength = np.linalg.norm(forces, axis=1, keepdims=True)
    shown = (np.isfinite(strength) & (strength > 1e-9)).ravel()
    places, forces, strength = places[shown], forces[shown], strength[shown]
    step = forces / strength * LONGEST * np.clip(strength / full, 0.12, 1)
    across = np.stack([-step[:, 1], step[:, 0]], 1)
    tip, gap = places + step, np.full_like(places, np.nan)
    left, right = (tip - HEAD * step + turn * HEAD * 0.6 * across for turn in (1, -1))
    path = np.stack([places, tip, gap, left, tip, right, gap], 1).reshape(-1, 2)
    figure.add_scatter(
        x=path[:, 0],
        y=path[:, 1],
        mode="lines",
        name=name,
        line=line,
        opacity=opacity,
        hoverinfo="skip",
        showlegend=False,
    )
