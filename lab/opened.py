"""A run file that somebody brings: read within limits, and checked against itself and its data set."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

import datasets
from lab.frame import Frame
from lab.packing import check
from lab.recording import Recording
from losslib.errors import ParameterError

MAX_FILE = 20_000_000
MAX_UNPACKED = 60_000_000
STATES = ("", "queued", "preparing", "ready", "running", "paused", "finished", "diverged", "failed")
ENDING = "losslab.npz"
_WORD = re.compile(r"[\w.+-]{1,40}")


def open_run(content: bytes) -> Recording:
    """The recording in a run file.

    Args:
        content: of the file.

    Raises:
        ParameterError: too large, no run file, damaged, or not of the data set that it names.
    """
    if len(content) > MAX_FILE:
        raise ParameterError(
            f"run file: {len(content) / 1e6:.1f} MB, at most {MAX_FILE // 10**6} MB are opened"
        )
    try:
        check(io.BytesIO(content), MAX_UNPACKED)
    except ParameterError:
        raise
    except Exception:
        raise ParameterError(
            "run file: this is no run file; open one that Save run on the Train page made"
        ) from None
    try:
        recording = Recording.load(io.BytesIO(content))
        if wrong := _of_itself(recording):
            raise ParameterError(f"run file: it is damaged ({wrong})")
    except ParameterError:
        raise
    except Exception as error:  # whatever a stranger's file makes of the reader, it is no run file
        raise ParameterError("run file: this is not a run file, or it is damaged") from error
    config = recording.config
    data = datasets.load(config.data, config.seed, **config.data_values)
    if wrong := _of_data(recording, data):
        raise ParameterError(
            f"run file: it does not fit the data set {config.data} of this version ({wrong})"
        )
    return recording


def _of_itself(recording: Recording) -> str:
    """What contradicts itself in a file, "" for nothing."""
    frames, points = recording.frames, len(recording.probe)
    if not frames:
        return "there are no frames"
    if recording.probe.ndim != 1 or recording.labels.shape != recording.probe.shape:
        return "points and labels differ in number"
    steps = [frame.step for frame in frames]
    if not all(isinstance(step, int) for step in steps) or steps != sorted({*steps}) or steps[0] < 0:
        return "its steps are out of order"
    curves = recording.curves()
    regular = {frame.step for frame in frames if not frame.extra}
    faults = (
        ("its state is unknown", recording.state in STATES and _is_text(recording.reason, 1000)),
        ("its curves are no rows", all(curve.ndim == 1 for curve in curves.values())),
        ("its curves leave out a frame", regular <= {*np.ravel(curves["step"]).tolist()}),
        ("where it was made is not said properly", _is_proper(recording.provenance)),
        *((_of_frame(frame, points, recording.config.dim), False) for frame in frames),
    )
    return next((words for words, sound in faults if words and not sound), "")


def _is_text(value: Any, most: int) -> bool:
    return isinstance(value, str) and len(value) <= most


def _is_proper(provenance: Any) -> bool:
    """Whether it holds short words and numbers only: it is shown."""
    return isinstance(provenance, dict) and all(
        _WORD.fullmatch(str(part)) for entry in provenance.items() for part in entry
    )


def _of_frame(frame: Frame, points: int, dim: int) -> str:
    """What is wrong with one frame, "" for nothing."""
    held, h, b = frame.embeddings, frame.histogram, frame.batch
    rows, reach = len(b.index), b.reach
    numbers = [frame.loss, frame.active_share, frame.gradient_norm, frame.learning_rate]
    numbers += [mark.value for mark in frame.marks] + [pair.share for pair in b.top]
    texts = [text for m in frame.marks for text in (m.kind, m.side, m.symbol, m.label)]
    texts += [term.name for term in frame.terms]
    parts = (
        ("map", frame.positions.shape == (points, 2) and np.isfinite(frame.positions).all()),
        ("embeddings", held is None or held.shape == (points, dim)),
        ("histogram", h.positive.ndim == 1 and h.positive.shape == h.negative.shape and h.low < h.high),
        ("batch", b.labels.shape == (rows,) and b.weights.shape == (rows, rows)),
        (
            "positives",
            reach is None or (reach.shape == (rows, 2) and 0 <= reach.min() <= reach.max() <= rows),
        ),
        ("numbers", all(isinstance(number, float | int) for number in numbers)),
        ("words", all(_is_text(text, 100) for text in texts)),
    )
    return next((f"the {name} of step {frame.step}" for name, sound in parts if not sound), "")


def _of_data(recording: Recording, data: datasets.Dataset) -> str:
    """What does not fit the data set, "" for nothing."""
    count = len(data.inputs)
    shown = [recording.probe, *(frame.batch.index for frame in recording.frames)]
    shown += [np.array([pair[:2] for pair in f.batch.top]) for f in recording.frames if f.batch.top]
    if any(len(index) and (index.min() < 0 or index.max() >= count) for index in shown):
        return f"it has samples beyond the {count} there are"
    if recording.class_names != tuple(data.class_names):
        return "its classes have other names"
    if not np.array_equal(recording.labels, data.truth[recording.probe]):
        return "its samples have other labels"
    classes = len(data.class_names)
    if any(f.batch.labels.min() < 0 or f.batch.labels.max() >= classes for f in recording.frames):
        return "a batch has classes that there are not"
    return ""


def file_name(recording: Recording) -> str:
    """What a run file is called: its data, its loss, its seed, its last step."""
    config, latest = recording.config, recording.latest
    step = 0 if latest is None else latest.step
    return f"{config.data}-{config.loss}-seed{config.seed}-step{step}.{ENDING}"


def as_file(recording: Recording) -> bytes:
    """The run file."""
    out = io.BytesIO()
    recording.save(out)
    return out.getvalue()
