"""The map of embeddings at one moment, on a plane or in space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.brief import brief
from lab.figures.literal import in_lines, literal
from lab.figures.palette import REFERENCE, class_style
from lab.figures.tool_bar import ABOVE, BELOW, title_under

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

ORDINALS = ("first", "second", "third")
SCALE = "Cividis"  # read alike with and without red and green


@dataclass(frozen=True, eq=False)
class Colouring:
    """A number of every point, (N,), `low` to 1, shown as its colour instead of its class."""

    title: str
    values: NDArray[np.floating[Any]]
    low: float = 0.0


def embedding_map(
    positions: NDArray[np.floating[Any]],
    classes: NDArray[np.integer[Any]],
    class_names: Sequence[str],
    samples: NDArray[np.integer[Any]] | None = None,
    *,
    title: str = "Map",
    about: Mapping[str, NDArray[Any]] | None = None,
    colouring: Colouring | None = None,
    dark: bool = False,
) -> go.Figure:
    """One trace a class, equal scale on all axes; class, sample and what else is known on hover.

    Args:
        positions: (N, 2), or (N, 3) for a map to be turned.
        classes: (N,), numbers into `class_names`.
        class_names: C names.
        samples: (N,) numbers shown on hover; 0 to N - 1 when None.
        title: of the figure.
        about: more of each point, (N,) each, shown on hover under their names.
        colouring: colours points by a number; symbols still tell the class.
        dark: colours for a dark background.
    """
    import plotly.graph_objects as go

    space = positions.shape[1] == 3
    known = {"sample": np.arange(len(positions)) if samples is None else samples, **(about or {})}
    if colouring is not None:
        known[colouring.title] = colouring.values
    figure, shown = go.Figure(), [literal(name) for name in brief(class_names)]
    for c, name in enumerate(shown):
        mine = np.flatnonzero(classes == c)
        if len(mine):
            marker: dict[str, Any] = {"size": 3.5 if space else 6, **class_style(c, dark, space)}
            if colouring is not None:
                marker |= {"color": colouring.values[mine], "coloraxis": "coloraxis"}
            custom = np.empty((len(mine), len(known)), dtype=object)
            for column, values in enumerate(known.values()):
                told = values[mine].tolist()
                custom[:, column] = [literal(one) if isinstance(one, str) else one for one in told]
            figure.add_trace(
                (go.Scatter3d if space else go.Scatter)(
                    **dict(zip("xyz", positions[mine].T, strict=False)),
                    mode="markers",
                    name=name,
                    legendgroup=name,
                    meta=class_names[c],
                    showlegend=colouring is None,
                    marker=marker,
                    customdata=custom,
                    hovertemplate=hover_text(in_lines(class_names[c]), known, space),
                )
            )
    figure.update_layout(
        title=title_under(title),
        **axes(space),
        legend={"title": "class", "itemsizing": "constant", **BELOW},
        margin={"l": 10, "r": 10, "t": ABOVE, "b": 10},
        showlegend=True,
        meta={"columns": list(known)},
    )
    if colouring is not None:
        symbol_legend(figure, shown, np.unique(classes), space)
        bar = {"title": {"text": colouring.title, "side": "right"}, "x": 1.0, "y": 0.5, "thickness": 14}
        figure.update_layout(
            coloraxis={"colorscale": SCALE, "cmin": colouring.low, "cmax": 1, "colorbar": bar}
        )
    if not len(positions):
        figure.add_annotation(text="There are no points to show.", showarrow=False)
    return figure


def symbol_legend(figure: go.Figure, names: Sequence[str], present: NDArray[Any], space: bool) -> None:
    """Legend entries in grey, because there colour tells something else and Plotly would draw them black."""
    import plotly.graph_objects as go

    for c in present.tolist():
        style = {**class_style(c, space=space), "color": REFERENCE, "size": 6}
        nowhere = {axis: [None] for axis in ("xyz" if space else "xy")}
        trace = (go.Scatter3d if space else go.Scatter)(
            **nowhere, mode="markers", name=names[c], legendgroup=names[c], marker=style
        )
        figure.add_trace(trace)


def hover_text(name: str, known: Mapping[str, NDArray[Any]], space: bool) -> str:
    """What a point says: class, every known column, position."""
    lines = [f"class {name}"]
    for column, (what, values) in enumerate(known.items()):
        form = ":.3f" if np.issubdtype(values.dtype, np.floating) else ""
        lines.append(f"{what} %{{customdata[{column}]{form}}}")
    lines.append(f"({', '.join(f'%{{{axis}:.3f}}' for axis in ('xyz' if space else 'xy'))})")
    return "<br>".join(lines) + "<extra></extra>"


def axes(space: bool) -> dict[str, Any]:
    """Layout of the axes: equal scales everywhere."""
    titles = [f"{ordinal} coordinate of the map" for ordinal in ORDINALS]
    if space:
        short = [f"{ordinal} coordinate" for ordinal in ORDINALS]
        named = {f"{axis}axis": {"title": text} for axis, text in zip("xyz", short, strict=True)}
        return {"scene": {**named, "aspectmode": "data", "dragmode": "orbit"}}
    return {"xaxis": {"title": titles[0]}, "yaxis": {"title": titles[1], "scaleanchor": "x"}}
