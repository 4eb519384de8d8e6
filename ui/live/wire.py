"""The binary format in which frames reach the browser (version 1, little-endian).

A packet is one or more messages, one after the other. A message is a header of 8 bytes and a body
padded with zeros to a multiple of 4, so that every number in it is aligned:

    u8 version · u8 kind · u16 epoch · u32 length of the body, padding included

The epoch is another one when a run starts again, so that the browser drops what it kept of the former.
Bodies by kind:

- HELLO: u32 length, JSON (names, ranges, directions), padding, u32 sample of each point, u16 class of each
  sample of the data set. Sent once an epoch.
- FRAME: `FRAME_HEAD`, then f32 positive bins, f32 negative bins, u16 x and y of each point,
  u32 sample and u16 class of each batch row, u8 pair weights (rows × rows), padding, JSON (marks, insights,
  terms, pairs).
  A coordinate is `low + q * scale` with one scale for both axes.
- GLANCE: `GLANCE_HEAD`, then bins and coordinates as in FRAME: the map and histograms between two frames.
- STATE: JSON (state, reason, step, total, speed, events, marks in force, what the last phase did).
- IMAGES: u32 count, u32 height, u32 width, u32 length, then zlib-compressed u8 pixels, one image a sample.
- BATCH: JSON, the answer to `{"do": "batch"}`: the samples of the last step's batch, where they stood on the
  map before the update, the force on each (minus the gradient, as seen on the map) and how far it moved.
- WHY: JSON, the answer to `{"do": "why", "of": "map" | "batch", "point": n}`: the partners that pulled and
  pushed a point, by share of the force, with the numbers of `lab.why.Forces`. Both go only to who asked.
- LINKS: u32 step, u32 positive pairs, u32 negative pairs, then u16 places of the two points of each pair of a
  frame's histograms, u8 bin of each pair. The answer to `{"do": "links", "step": n}`, to who asked.

Numbers that were not measured or are not defined are NaN in binary fields and null in JSON.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from lab.frame import Frame, Glance
    from lab.insights import Insight
    from lab.pair_bins import PairBins
    from losslib.types import Mark

    Array: TypeAlias = NDArray[Any]

VERSION = 1
HELLO, FRAME, STATE, IMAGES, GLANCE, BATCH, WHY, LINKS = 1, 2, 3, 4, 5, 6, 7, 8
HEADER = struct.Struct("<BBHI")
# step, points, batch rows, bins, then the numbers of FRAME_NUMBERS as f32, then the time sent in ms as f64.
FRAME_HEAD = struct.Struct("<IIII16fd")
# step, points, bins, then x_low, y_low, scale and the histogram's ends as f32, then the time sent in ms.
GLANCE_HEAD = struct.Struct("<III5fd")
FRAME_NUMBERS = (
    "loss",
    "active_share",
    "recall_at_1",
    "map_at_r",
    "alignment",
    "uniformity",
    "spread",
    "effective_rank",
    "mean_cosine",
    "gradient_norm",
    "learning_rate",
    "x_low",
    "y_low",
    "scale",
    "histogram_low",
    "histogram_high",
)
STEPS_OF_COORDINATE = 65535


def pack(kind: int, epoch: int, *parts: bytes) -> bytes:
    """One message: header, the parts in order, zeros up to a multiple of 4 bytes."""
    body = b"".join(parts)
    body += b"\0" * (-len(body) % 4)
    return HEADER.pack(VERSION, kind, epoch & 0xFFFF, len(body)) + body


def pack_hello(epoch: int, about: Mapping[str, Any], samples: Array, classes: Array) -> bytes:
    """What stays the same for a whole run: names and ranges, the sample that each point of the map
    stands for (N,), and the class of each sample of the data set (M,)."""
    text = _json({**about, "points": len(samples), "samples": len(classes)})
    head = struct.pack("<I", len(text)) + text + b"\0" * (-len(text) % 4)
    index = np.ascontiguousarray(samples, dtype="<u4").tobytes()
    return pack(HELLO, epoch, head, index, np.ascontiguousarray(classes, dtype="<u2").tobytes())


def pack_state(epoch: int, state: Mapping[str, Any]) -> bytes:
    """Where the run stands, in words and numbers."""
    return pack(STATE, epoch, _json(state))


def pack_answer(epoch: int, kind: int, answer: Mapping[str, Any]) -> bytes:
    """The answer to a question about the last step; kind is BATCH or WHY."""
    return pack(kind, epoch, _json(answer))


def pack_links(epoch: int, found: PairBins) -> bytes:
    """Which pairs stand in which bin of a frame's histograms."""
    count = len(found.bins)
    head = struct.pack("<III", found.step, found.positives, count - found.positives)
    pairs = np.ascontiguousarray(found.pairs, dtype="<u2").tobytes()
    return pack(LINKS, epoch, head, pairs, np.ascontiguousarray(found.bins, dtype=np.uint8).tobytes())


def pack_images(epoch: int, images: Array, squeezed: bytes = b"") -> bytes:
    """The pictures of the samples, (M, H, W) uint8, shown on hover and beside pairs.

    `squeezed` are the same pictures from `squeeze`, where somebody keeps them.
    """
    count, height, width = images.shape
    squeezed = squeezed or squeeze(images)
    return pack(IMAGES, epoch, struct.pack("<IIII", count, height, width, len(squeezed)), squeezed)


def squeeze(images: Array) -> bytes:
    """The pixels, zlib-compressed. Fast rather than small: 4 MB of digits take 50 ms."""
    return zlib.compress(np.ascontiguousarray(images, dtype=np.uint8).tobytes(), 1)


def pack_frame(epoch: int, frame: Frame, insights: Sequence[Insight] = (), sent_ms: float = 0.0) -> bytes:
    """One frame of a recording with what it says in words.

    `sent_ms` is when it was made, in ms since 1970, for measuring the way to the screen.
    """
    low, scale, positions = quantise(frame.positions)
    batch = frame.batch
    rows = len(batch.labels)
    histogram = frame.histogram
    measured: dict[str, float | None] = {**frame.quality, **frame.collapse}
    measured |= {
        "loss": frame.loss,
        "active_share": frame.active_share,
        "gradient_norm": frame.gradient_norm,
        "learning_rate": frame.learning_rate,
        "x_low": low[0],
        "y_low": low[1],
        "scale": scale,
        "histogram_low": histogram.low,
        "histogram_high": histogram.high,
    }
    if frame.at_origin:
        measured["mean_cosine"] = None  # a zero vector has no direction
    numbers = [math.nan if (value := measured.get(name)) is None else value for name in FRAME_NUMBERS]
    bins = len(histogram.positive)
    head = FRAME_HEAD.pack(frame.step, len(positions), rows, bins, *numbers, sent_ms)
    parts = [
        head,
        np.ascontiguousarray(histogram.positive, dtype="<f4").tobytes(),
        np.ascontiguousarray(histogram.negative, dtype="<f4").tobytes(),
        positions.tobytes(),
        np.ascontiguousarray(batch.index, dtype="<u4").tobytes(),
        np.ascontiguousarray(batch.labels, dtype="<u2").tobytes(),
        np.ascontiguousarray(batch.weights, dtype=np.uint8).tobytes(),
    ]
    filled = sum(len(part) for part in parts)
    return pack(FRAME, epoch, *parts, b"\0" * (-filled % 4), _json(_notes(frame, insights)))


def pack_glance(epoch: int, glance: Glance, sent_ms: float = 0.0) -> bytes:
    """Map and histograms as they are between two frames; `sent_ms` as in `pack_frame`."""
    low, scale, positions = quantise(glance.positions)
    histogram = glance.histogram
    numbers = (*low, scale, histogram.low, histogram.high)
    head = GLANCE_HEAD.pack(glance.step, len(positions), len(histogram.positive), *numbers, sent_ms)
    bins = (np.ascontiguousarray(side, dtype="<f4").tobytes() for side in histogram[2:])
    return pack(GLANCE, epoch, head, *bins, positions.tobytes())


def quantise(positions: Array) -> tuple[tuple[float, float], float, Array]:
    """Lowest corner, scale and (N, 2) u16 coordinates. Points that are not finite sit at the corner."""
    points = np.asarray(positions, dtype=np.float64)
    known = points[np.isfinite(points).all(axis=1)] if len(points) else points
    if len(known) == 0:
        return (0.0, 0.0), 1.0, np.zeros((len(points), 2), dtype="<u2")
    low = known.min(axis=0)
    extent = float((known.max(axis=0) - low).max())
    scale = extent / STEPS_OF_COORDINATE if extent > 0 else 1.0
    steps = np.nan_to_num((points - low) / scale, nan=0.0, posinf=0.0, neginf=0.0)
    whole = np.clip(np.rint(steps), 0, STEPS_OF_COORDINATE).astype("<u2")
    return (float(low[0]), float(low[1])), scale, whole


def mark_notes(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Margins and temperature, to be drawn on the histograms."""
    return [
        {"kind": m.kind, "side": m.side, "value": m.value, "symbol": m.symbol, "label": m.label}
        for m in marks
    ]


def _notes(frame: Frame, insights: Sequence[Insight]) -> dict[str, Any]:
    return {
        "marks": mark_notes(frame.marks),
        "insights": [
            {"kind": i.kind, "sentence": i.sentence, "cure": i.cure.text if i.cure else ""} for i in insights
        ],
        "terms": [
            {"name": t.name, "count": t.count, "total": t.total, "active": t.active} for t in frame.terms
        ],
        "pairs": [
            {
                "anchor": int(p.anchor),
                "other": int(p.other),
                "positive": bool(p.positive),
                "value": p.value,
                "share": p.share,
            }
            for p in frame.batch.top
        ],
        # positives of row i: rows reach[2 i] to reach[2 i + 1] - 1; null: rows of its class
        "reach": None if frame.batch.reach is None else frame.batch.reach.ravel().tolist(),
    }


def _json(value: Any) -> bytes:
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False).encode()


def _plain(value: Any) -> Any:
    """The same with numbers a browser can read: numpy scalars as Python's, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, float) and not math.isfinite(number):
        return None
    return number
