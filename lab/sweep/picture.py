"""The small picture of one cell at one step, an SVG: its map and its distances. No torch, no Plotly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lab.sweep.results import CellResult

SIDE, GAP, WIDE, HIGH = 1000, 100, 1000, 1000  # in units of the picture
EDGE, DOT = 60, 46
POSITIVE, NEGATIVE = 0, 4  # their places in the palette, as in the live panel


def picture(result: CellResult, step: int, palette: Sequence[str], ink: str) -> str:
    """The map on the left; on the right positive pairs upwards, negative pairs downwards, thresholds dashed.

    Args:
        result: of the cell.
        step: the picture is the last one at or before it.
        palette: colours of the classes, ten or more.
        ink: colour of lines.
    """
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE + GAP + WIDE} {HIGH}" fill="none">'
    place = result.place(step)
    if place < 0 or not len(result.steps):
        return f"{head}{_cross(ink)}</svg>"
    parts = _map(result.positions[place], result.labels, palette, ink)
    parts += _distances(result, place, palette, ink)
    return head + "".join(parts) + "</svg>"


def _map(
    positions: NDArray[np.float32], labels: NDArray[np.int32], palette: Sequence[str], ink: str
) -> list[str]:
    """One path a class; round and square dots in turn, so that colour is not the only difference."""
    points, parts, reach = positions.astype(np.float64), [], SIDE / 2 - EDGE
    lengths = np.hypot(*points.T)
    if len(points) and abs(lengths - 1).max() < 1e-3:  # the unit circle, each point a little in or out
        points = points * (0.94 + 0.12 * (np.arange(len(points)) * 0.6180339887 % 1.0))[:, None]
        parts.append(f'<circle cx="500" cy="500" r="{reach:.0f}" stroke="{ink}" stroke-opacity=".3"/>')
    else:
        low, high = points.min(axis=0, initial=0.0), points.max(axis=0, initial=0.0)
        points = (points - (low + high) / 2) / (float((high - low).max()) / 2 or 1.0)
    pixels = np.rint(SIDE / 2 + points * [reach, -reach]).astype(int)
    for label in np.unique(labels):
        dots = "".join(f"M{x} {y}h0" for x, y in pixels[labels == label])
        cap = "square" if label % 2 else "round"
        parts.append(
            f'<path d="{dots}" stroke="{palette[label % len(palette)]}" stroke-width="{DOT}" '
            f'stroke-linecap="{cap}" stroke-opacity=".8"/>'
        )
    return parts


def _distances(result: CellResult, place: int, palette: Sequence[str], ink: str) -> list[str]:
    """Both histograms, each as high as its fullest bin, and the loss's thresholds."""
    left, middle = SIDE + GAP, HIGH // 2
    parts = []
    for counts, sign, colour in ((result.positive, -1, POSITIVE), (result.negative, 1, NEGATIVE)):
        edges = np.linspace(left, left + WIDE - EDGE, counts.shape[1] + 1).round().astype(int)
        fullest = max(int(counts[place].max(initial=0)), 1)
        heights = (middle + sign * (middle - EDGE) * counts[place] / fullest).round().astype(int)
        bars = "".join(f"V{y}H{x}" for y, x in zip(heights, edges[1:], strict=True))
        parts.append(f'<path d="M{left} {middle}{bars}V{middle}Z" fill="{palette[colour]}"/>')
    low, high = result.extent[place]
    for mark in result.marks:
        if mark.kind == "line" and low <= mark.value <= high:
            x = left + (WIDE - EDGE) * (mark.value - low) / (high - low)
            parts.append(
                f'<path d="M{x:.0f} {EDGE}V{HIGH - EDGE}" stroke="{ink}" stroke-width="12" '
                'stroke-dasharray="40 30"/>'
            )
    return [*parts, f'<path d="M{left} {middle}H{left + WIDE - EDGE}" stroke="{ink}" stroke-width="8"/>']


def _cross(ink: str) -> str:
    return (
        f'<path d="M300 300L700 700M700 300L300 700" stroke="{ink}" stroke-opacity=".5" stroke-width="30"/>'
    )
