"""The run file: one npz of arrays and a JSON header. No pickle, so opening a stranger's file runs nothing.

It is a zip of numpy arrays packed by LZMA, so numpy alone reads it, too. What a file may unpack to is bounded
before anything of it is unpacked, the memory of the LZMA decoder included.
"""

from __future__ import annotations

import json
import lzma
import math
import zipfile
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.floats import put_back, taken_out
from lab.frame import BatchView, Frame, Histogram, PairShare, TermSummary
from lab.grid import packed, unpacked
from lab.packing import check, write
from lab.recording import Recording, stripped
from losslib.errors import ParameterError
from losslib.types import Mark

FORMAT = 3
READ_FORMATS = (1, 2, 3)  # see `lab.grid.unpacked`
MAX_BYTES = 200_000_000
EMBEDDING_BYTES = 60_000  # room for embeddings of more coordinates than the map has
WEIGHT_BYTES = 80_000  # room for the weights of the batches' pairs, packed
_NUMBERS = ("step", "loss", "active_share", "gradient_norm", "learning_rate")


def provenance(device: str = "cpu") -> dict[str, Any]:
    """What equal recordings also depend on: versions, threads, device."""
    import torch

    import losslib

    return {
        "losslib": losslib.__version__,
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "device": device,
    }


def save(recording: Recording, path: str | Path | BinaryIO) -> None:
    """Write the recording. What is in the file comes back bit for bit.

    A long run leaves out most wide embeddings and, of a loss that weighs nearly every pair, most weights of
    the batches' pairs: those of the first frame, the last and as many between as have room stay. Embeddings
    of the map's own two coordinates cost nothing.
    """
    frames = without_embeddings(recording.frames, EMBEDDING_BYTES)
    frames = without_weights(frames, WEIGHT_BYTES)
    header = {
        "format": FORMAT,
        "config": recording.config.to_dict(),
        "provenance": recording.provenance or provenance(),
        "state": recording.state,
        "reason": recording.reason,
        "class_names": list(recording.class_names),
        "chance": recording.chance,
    }
    header["frames"], floats = taken_out([_head(frame) for frame in frames])
    text = json.dumps(_no_nan(header), allow_nan=False)
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(text.encode(), dtype=np.uint8),
        "floats": floats,
        "probe": recording.probe,
        "labels": recording.labels,
    }
    arrays |= {f"curve_{name}": curve for name, curve in recording.curves().items()}
    if frames:
        arrays |= packed([frame.positions for frame in frames])
        arrays["positive"] = np.stack([frame.histogram.positive for frame in frames])
        arrays["negative"] = np.stack([frame.histogram.negative for frame in frames])
        arrays["batch_index"] = np.stack([frame.batch.index for frame in frames])
        arrays["batch_labels"] = np.stack([frame.batch.labels for frame in frames])
        arrays["batch_weights"] = np.stack([frame.batch.weights for frame in frames])
        held = [(f.step, beyond(f.positions, f.embeddings)) for f in frames if f.embeddings is not None]
        if held:
            arrays["embedded"] = np.array([step for step, _ in held])
            arrays["embeddings"] = np.stack([kept for _, kept in held])
    write(arrays, path)


def without_embeddings(frames: list[Frame], room: int) -> list[Frame]:
    """The frames with as many embeddings as fit in a room, where those as wide as the map take none."""

    def size(frame: Frame) -> int:
        held = frame.embeddings
        return 0 if held is None or held.shape == frame.positions.shape else held.nbytes

    return stripped(frames, room, size, lambda frame: replace(frame, embeddings=None))


def without_weights(frames: list[Frame], room: int) -> list[Frame]:
    """The frames with as many weights of their batch's pairs as fit in a room when packed, else 0."""
    packed_sizes = {
        frame.step: len(lzma.compress(frame.batch.weights.tobytes(), preset=0)) for frame in frames
    }

    def light(frame: Frame) -> Frame:
        return replace(frame, batch=replace(frame.batch, weights=np.zeros_like(frame.batch.weights)))

    return stripped(frames, room, lambda frame: packed_sizes[frame.step], light)


def load(path: str | Path | BinaryIO) -> Recording:
    """Read a run file. Raises ParameterError with one sentence when it is not one."""
    try:
        with Path(path).open("rb") if isinstance(path, str | Path) else nullcontext(path) as file:
            check(file, MAX_BYTES)
            with np.load(file, allow_pickle=False) as entries:
                return _recording({name: entries[name] for name in entries.files})
    except OSError as error:
        raise ParameterError(f"run file: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, lzma.LZMAError, KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError("run file: this is not a run file, or it is damaged") from error


def beyond(positions: NDArray[np.float32], embeddings: NDArray[np.float16]) -> NDArray[Any]:
    """Embeddings of two coordinates as their difference from the map's, which is nearly always 0; exact."""
    if embeddings.shape != positions.shape:
        return embeddings
    return embeddings.view(np.uint16) - positions.astype(np.float16).view(np.uint16)


def embedded(positions: NDArray[np.float32], kept: NDArray[Any] | None) -> NDArray[np.float16] | None:
    """The embeddings that `beyond` was given."""
    if kept is None or kept.dtype == np.float16:
        return kept
    return (kept + positions.astype(np.float16).view(np.uint16)).view(np.float16)


def differences(made: dict[str, Any], here: dict[str, Any]) -> tuple[str, ...]:
    """One sentence for each thing that differs from where the file was made."""
    return tuple(
        f"Made with {name} {made.get(name)}, here it is {here[name]}: "
        "training it again may differ in the last digits."
        for name in here
        if made.get(name) != here[name]
    )


def _recording(arrays: dict[str, NDArray[Any]]) -> Recording:
    header = json.loads(arrays["header"].tobytes().decode())
    if header.get("format") not in READ_FORMATS:
        known = " or ".join(map(str, READ_FORMATS))
        raise ParameterError(f"run file: format {known} is read here, got {header.get('format')!r}")
    heads = _with_nan(header["frames"])  # formats 1 and 2 had all numbers as text
    heads = put_back(heads, arrays["floats"]) if "floats" in arrays else heads
    maps = unpacked(arrays) if heads else []
    recording = Recording(
        RunConfig.from_dict(header["config"]),
        arrays["probe"],
        arrays["labels"],
        tuple(header["class_names"]),
    )
    recording.state, recording.reason = header["state"], header["reason"]
    recording.chance = header.get("chance", recording.chance)
    recording.provenance = header["provenance"]
    here = provenance(header["provenance"].get("device", "cpu"))
    recording.notes = differences(header["provenance"], here)
    recording.frames = [_frame(head, arrays, place, maps[place]) for place, head in enumerate(heads)]
    recording.restore_curves({name[6:]: array for name, array in arrays.items() if name.startswith("curve_")})
    return recording


def _head(frame: Frame) -> dict[str, Any]:
    """The numbers of a frame that are not arrays."""
    return {
        **{name: getattr(frame, name) for name in _NUMBERS},
        "quality": frame.quality,
        "collapse": frame.collapse,
        "range": [frame.histogram.low, frame.histogram.high],
        "terms": [[t.name, t.count, t.total, t.active] for t in frame.terms],
        "marks": [[m.kind, m.side, m.value, m.symbol, m.label] for m in frame.marks],
        "top": [list(pair) for pair in frame.batch.top],
        "reach": None if frame.batch.reach is None else frame.batch.reach.tolist(),
        "extra": frame.extra,
    }


def _frame(
    head: dict[str, Any], arrays: dict[str, NDArray[Any]], place: int, positions: NDArray[np.float32]
) -> Frame:
    batch = BatchView(
        arrays["batch_index"][place],
        arrays["batch_labels"][place],
        arrays["batch_weights"][place],
        tuple(PairShare(*pair) for pair in head["top"]),
        None if head.get("reach") is None else np.array(head["reach"], dtype=np.int32),
    )
    return Frame(
        **{name: head[name] for name in _NUMBERS},
        positions=positions,
        histogram=Histogram(*_pair(head["range"]), arrays["positive"][place], arrays["negative"][place]),
        quality=head["quality"],
        collapse=head["collapse"],
        batch=batch,
        terms=tuple(TermSummary(*term) for term in head["terms"]),
        marks=tuple(Mark(*mark) for mark in head["marks"]),
        embeddings=embedded(positions, _kept(arrays, head["step"])),
        extra=bool(head["extra"]),
    )


def _kept(arrays: dict[str, NDArray[Any]], step: int) -> NDArray[Any] | None:
    """What the file has of a frame's embeddings; formats 1 and 2 had an array a frame."""
    if "embedded" not in arrays:
        return arrays.get(f"embeddings_{step}")
    places = np.flatnonzero(arrays["embedded"] == step)
    found: NDArray[Any] | None = arrays["embeddings"][places[0]] if len(places) else None
    return found


def _pair(ends: list[float]) -> tuple[float, float]:
    low, high = ends
    return low, high


def _no_nan(value: Any) -> Any:
    """The value with NaN and infinities as texts, which JSON has no numbers for."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, dict):
        return {key: _no_nan(item) for key, item in value.items()}
    return [_no_nan(item) for item in value] if isinstance(value, list | tuple) else value


def _with_nan(value: Any) -> Any:
    """The value that `_no_nan` wrote."""
    if isinstance(value, dict):
        return (
            float(value["float"]) if set(value) == {"float"} else {k: _with_nan(v) for k, v in value.items()}
        )
    return [_with_nan(item) for item in value] if isinstance(value, list) else value
