"""The run file: one npz of arrays and a JSON header. No pickle, so opening a stranger's file runs nothing."""

from __future__ import annotations

import json
import math
import zipfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.frame import (
    BatchView,
    Frame,
    Histogram,
    PairShare,
    TermSummary,
    moved,
    moves,
    quantised,
    restored,
)
from lab.recording import Recording
from losslib.errors import ParameterError
from losslib.types import Mark

FORMAT = 2
READ_FORMATS = (1, 2)  # 1 held positions and embeddings as they are
MAX_BYTES = 200_000_000
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
    """Write the recording; exact but for nothing: positions lie on the grid that is stored."""
    frames = recording.frames
    header = {
        "format": FORMAT,
        "config": recording.config.to_dict(),
        "provenance": recording.provenance or provenance(),
        "state": recording.state,
        "reason": recording.reason,
        "class_names": list(recording.class_names),
        "chance": recording.chance,
        "frames": [_head(frame) for frame in frames],
    }
    text = json.dumps(_no_nan(header), allow_nan=False)
    arrays: dict[str, NDArray[Any]] = {
        "header": np.frombuffer(text.encode(), dtype=np.uint8),
        "probe": recording.probe,
        "labels": recording.labels,
    }
    arrays |= {f"curve_{name}": curve for name, curve in recording.curves().items()}
    if frames:
        grids = [quantised(frame.positions) for frame in frames]
        arrays["moves"] = moves(np.stack([grid for grid, _, _ in grids]))
        arrays["extent"] = np.array([[low, high] for _, low, high in grids])
        arrays["positive"] = np.stack([frame.histogram.positive for frame in frames])
        arrays["negative"] = np.stack([frame.histogram.negative for frame in frames])
        arrays["batch_index"] = np.stack([frame.batch.index for frame in frames])
        arrays["batch_labels"] = np.stack([frame.batch.labels for frame in frames])
        arrays["batch_weights"] = np.stack([frame.batch.weights for frame in frames])
        arrays |= {
            f"embeddings_{f.step}": beyond(f.positions, f.embeddings)
            for f in frames
            if f.embeddings is not None
        }
    with nullcontext(path) if hasattr(path, "write") else Path(path).open("wb") as file:
        np.savez_compressed(
            file, allow_pickle=False, **arrays
        )  # given a name, numpy would add its own ending


def load(path: str | Path | BinaryIO) -> Recording:
    """Read a run file. Raises ParameterError with one sentence when it is not one."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MAX_BYTES:
            raise ParameterError(
                f"run file: {size // 10**6} MB unpacked, at most {MAX_BYTES // 10**6} are read"
            )
        if not isinstance(path, str | Path):
            path.seek(0)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return _recording(arrays)
    except OSError as error:
        raise ParameterError(f"run file: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, KeyError, IndexError, TypeError, ValueError) as error:
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
    if "moves" in arrays:
        arrays["positions"] = moved(arrays["moves"])
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
    recording.frames = [_frame(head, arrays, place) for place, head in enumerate(header["frames"])]
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


def _frame(head: dict[str, Any], arrays: dict[str, NDArray[Any]], place: int) -> Frame:
    head = _with_nan(head)
    low, high = (float(value) for value in arrays["extent"][place])
    batch = BatchView(
        arrays["batch_index"][place],
        arrays["batch_labels"][place],
        arrays["batch_weights"][place],
        tuple(PairShare(*pair) for pair in head["top"]),
        None if head.get("reach") is None else np.array(head["reach"], dtype=np.int32),
    )
    positions = restored(arrays["positions"][place], low, high)
    return Frame(
        **{name: head[name] for name in _NUMBERS},
        positions=positions,
        histogram=Histogram(*_pair(head["range"]), arrays["positive"][place], arrays["negative"][place]),
        quality=head["quality"],
        collapse=head["collapse"],
        batch=batch,
        terms=tuple(TermSummary(*term) for term in head["terms"]),
        marks=tuple(Mark(*mark) for mark in head["marks"]),
        embeddings=embedded(positions, arrays.get(f"embeddings_{head['step']}")),
        extra=bool(head["extra"]),
    )


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
