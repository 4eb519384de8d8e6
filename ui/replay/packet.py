"""All shared moments of the runs of a comparison as one block of bytes for `client/`.

A u32 with the length of the JSON, the JSON (see `_head`) and zeros up to a multiple of 4. Then u32 sample and
u16 class of each point, zeros up to a multiple of 4. Then for each run and each step u16 x and y of each
point, f32 counts of positive pairs, f32 counts of negative pairs. `panel` puts a u32 before all that, the
step where the replay begins.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lab import glossary
from lab.compare import words
from lab.compare.line_up import LETTERS
from lab.compare.measures import MEASURES
from losslib import catalog
from ui.live.about import class_labels
from ui.live.wire import mark_notes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lab.compare.duel import Contender
    from lab.frame import Frame
    from lab.recording import Recording

MOST_POINTS = 1000  # drawn a map; the numbers are of all
LEVELS = 65_535


@lru_cache(maxsize=8)
def packet(sides: tuple[Contender, ...], titles: tuple[str, ...]) -> bytes:
    """The whole comparison; thirty people who look at one share it."""
    recordings = [side.recording for side in sides]
    steps, first = words.shared_steps(recordings), recordings[0]
    index, labels = first.probe[:MOST_POINTS], first.labels[:MOST_POINTS]
    frames = [[one.at(step) for step in steps] for one in recordings]
    maps = [words.laid_out(recordings, step) for step in steps]
    spans: list[list[list[float]]] = []
    body = [index.astype("<u4").tobytes(), _padded(labels.astype("<u2").tobytes())]
    for run, own in enumerate(frames):
        spans.append([])
        for moment, frame in enumerate(own):
            grid, span = _grid(maps[moment][run][:MOST_POINTS])
            spans[run].append([*span, frame.histogram.low, frame.histogram.high])
            body += [grid.tobytes(), *(_counts(frame, side) for side in ("positive", "negative"))]
    head = _head(sides, titles, steps, frames) | {"spans": spans, "points": len(index)}
    content = b"".join(body)
    head["id"] = hashlib.sha256(content + repr(titles).encode()).hexdigest()[:16]
    text = json.dumps(_finite(head), separators=(",", ":"), allow_nan=False).encode()
    return struct.pack("<I", len(text)) + _padded(text) + content


def _head(
    sides: Sequence[Contender], titles: Sequence[str], steps: list[int], frames: list[list[Frame]]
) -> dict[str, Any]:
    recordings = [side.recording for side in sides]
    first = recordings[0]
    return {
        "steps": steps,
        **class_labels(first.class_names),
        "unit_circle": words.on_circle(recordings),
        "bins": len(frames[0][0].histogram.positive),
        "chance": first.chance,
        "distances": words.distance_words(recordings, titles),
        "ends": words.curves_words(recordings, titles),
        "runs": [
            _run(title, letter, recording, own)
            for title, letter, recording, own in zip(titles, LETTERS, recordings, frames, strict=False)
        ],
        "moments": [words.moment(sides, titles, step, MOST_POINTS) for step in steps],
        "measures": [
            {"name": one.title, "better": one.better, "reference": one.reference, "share": one.share}
            for one in MEASURES
        ],
        "glossary": {one.title: glossary.define(one.title) for one in MEASURES},
    }


def _run(title: str, letter: str, recording: Recording, frames: list[Frame]) -> dict[str, Any]:
    distance = catalog.get(recording.config.loss).default_distance()
    curves = recording.curves()
    known = [np.isfinite(curves[one.name]) for one in MEASURES]
    return {
        "title": title,
        "letter": letter,
        "distance": distance.title,
        "inverted": bool(distance.is_inverted),
        "marks": [mark_notes(frame.marks) for frame in frames],
        "events": [event.step for event in recording.config.events],
        "curves": [
            np.stack([curves["step"][there], curves[one.name][there]], axis=1).round(6).tolist()
            for one, there in zip(MEASURES, known, strict=True)
        ],
    }


def _grid(points: NDArray[np.floating[Any]]) -> tuple[NDArray[np.uint16], list[float]]:
    """Whole numbers from 0 to 65,535 with one scale for both axes; with the least x and y and the scale."""
    low = points.min(axis=0) if len(points) else np.zeros(2)
    scale = float((points - low).max(initial=0.0)) / LEVELS or 1.0
    return np.rint((points - low) / scale).astype("<u2"), [*low.tolist(), scale]


def _counts(frame: Frame, side: str) -> bytes:
    counts: NDArray[np.int32] = getattr(frame.histogram, side)
    return counts.astype("<f4").tobytes()


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 4)


def _finite(value: Any) -> Any:
    """The value with None for what JSON has no number for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value
