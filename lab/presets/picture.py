"""The small picture of a preset, an SVG made from the last frame of its recording. No torch, no Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.grid import last_unpacked
from lab.percent import percent
from lab.presets import Preset, get

MOST_POINTS = 500
WIDTH, HEIGHT, EDGE = 2400, 1200, 60  # in units of the picture; whole numbers keep it small
DOT = 44
POSITIVE, NEGATIVE = 0, 4  # their places in the palette, as in the live panel


@dataclass(frozen=True, eq=False)
class Moment:
    """The last frame of a recording, as far as a picture needs it.

    Args:
        positions: of the map's points, (N, 2).
        labels: (N,) classes.
        positive: counts of positive pairs in bins of distance, (bins,).
        negative: the same of negative pairs.
        step: of the frame.
        recall: recall@1 of the frame.
        chance: recall@1 of a guess.
        circle: whether the map is the unit circle itself, not a plane of more coordinates.
    """

    positions: NDArray[np.float64]
    labels: NDArray[np.int32]
    positive: NDArray[np.int32]
    negative: NDArray[np.int32]
    step: int
    recall: float
    chance: float
    circle: bool


@cache
def last_moment(name: str) -> Moment:
    """Read from the run file of a preset."""
    preset = get(name)
    flat = preset.settings.get("dim", "2") == "2" and preset.settings.get("output", "l2") == "l2"
    with np.load(preset.recording_file, allow_pickle=False) as file:
        labels = file["labels"]
        return Moment(
            positions=last_unpacked(file).astype(np.float64),
            labels=labels,
            positive=file["positive"][-1],
            negative=file["negative"][-1],
            step=int(file["curve_step"][-1]),
            recall=float(file["curve_recall_at_1"][-1]),
            chance=float(((np.bincount(labels) / len(labels)) ** 2).sum()),
            circle=flat,
        )


def caption(preset: Preset) -> str:
    """The numbers of the picture."""
    moment = last_moment(preset.name)
    return f"Step {moment.step}, recall@1 {percent(moment.recall, 0)} (chance {percent(moment.chance, 0)})"


def summary(preset: Preset) -> str:
    """The picture in words, for who does not see it."""
    moment = last_moment(preset.name)
    classes = len(np.unique(moment.labels))
    return (
        f"{preset.title}, at step {moment.step}: map of {len(moment.labels)} embeddings of {classes} "
        "classes; beside it the distances of positive pairs upwards and of negative pairs downwards"
    )


def picture(preset: Preset, palette: Sequence[str], ink: str) -> str:
    """An SVG of about 6 kB: the map on the left, the distances of pairs on the right.

    Args:
        preset: whose recording.
        palette: colours of the classes, ten or more.
        ink: colour of lines.
    """
    moment = last_moment(preset.name)
    side = HEIGHT - 2 * EDGE
    parts = [
        *_map(moment, palette, ink, side),
        *_histogram(moment, palette, ink, EDGE + side + 120, WIDTH - EDGE),
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" fill="none">'
    return head + "".join(parts) + "</svg>"


def _map(moment: Moment, palette: Sequence[str], ink: str, side: int) -> list[str]:
    """One path a class; round and square dots in turn, so that colour is not the only difference."""
    points, middle = _placed(moment.positions, moment.circle), EDGE + side / 2
    parts = []
    if moment.circle:
        parts.append(
            f'<circle cx="{middle:.0f}" cy="{middle:.0f}" r="{side / 2 / 1.12:.0f}" stroke="{ink}" '
            'stroke-opacity="0.35" stroke-width="10"/>'
        )
    every = -(-len(points) // MOST_POINTS)
    pixels = np.rint(middle + points[::every] * [side / 2, -side / 2]).astype(int)
    labels = moment.labels[::every]
    for label in np.unique(labels):
        dots = "".join(f"M{x} {y}h0" for x, y in pixels[labels == label])
        cap = "square" if label % 2 else "round"
        width = DOT * 0.85 if label % 2 else DOT
        parts.append(
            f'<path d="{dots}" stroke="{palette[label % len(palette)]}" stroke-width="{width:.0f}" '
            f'stroke-linecap="{cap}" stroke-opacity="0.85"/>'
        )
    return parts


def _placed(positions: NDArray[np.float64], circle: bool) -> NDArray[np.float64]:
    """The points between -1 and 1, one scale for both axes; those of a circle a little in or out of it."""
    if circle:
        away = 0.94 + 0.12 * (np.arange(len(positions)) * 0.6180339887 % 1.0)
        on_circle = np.hypot(*positions.T) > 0.999
        scaled: NDArray[np.float64] = positions * np.where(on_circle, away, 1.0)[:, None] / 1.12
        return scaled
    low, high = positions.min(axis=0), positions.max(axis=0)
    reach = float((high - low).max()) / 2 or 1.0
    fitted: NDArray[np.float64] = (positions - (low + high) / 2) / reach * 0.94
    return fitted


def _histogram(moment: Moment, palette: Sequence[str], ink: str, left: int, right: int) -> list[str]:
    """Positive pairs upwards, negative pairs downwards, each as high as its fullest bin."""
    middle, reach = HEIGHT // 2, HEIGHT // 2 - EDGE
    parts = [
        f'<path d="{_area(counts, left, right, middle, sign * reach)}" fill="{palette[colour]}"/>'
        for counts, sign, colour in ((moment.positive, -1, POSITIVE), (moment.negative, 1, NEGATIVE))
    ]
    axis = f"M{left} {middle}H{right}"
    return [*parts, f'<path d="{axis}" stroke="{ink}" stroke-opacity="0.6" stroke-width="10"/>']


def _area(counts: NDArray[Any], left: int, right: int, middle: int, reach: int) -> str:
    """A path round the bars of a histogram."""
    edges = np.linspace(left, right, len(counts) + 1).round().astype(int)
    heights = (middle + reach * counts / max(int(counts.max()), 1)).round().astype(int)
    bars = "".join(f"V{y}H{x}" for y, x in zip(heights, edges[1:], strict=True))
    return f"M{left} {middle}{bars}V{middle}Z"
