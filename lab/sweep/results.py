"""What a sweep keeps of one run: its numbers at every frame, and a few small pictures' worth of points."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.grid import FORMER_LEVELS as LEVELS
from lab.grid import Grid, restored
from lab.recording import CURVES, Recording, is_frame_step
from losslib.errors import ParameterError
from losslib.types import Mark

FORMAT = 1
MOMENTS, POINTS = 16, 400
ARRAYS = ("steps", "labels", "extent", "positive", "negative")


@dataclass(frozen=True, eq=False)
class CellResult:
    """One finished run of a sweep.

    Args:
        config: what was trained.
        state: "finished", "collapsed", "diverged" or "failed".
        reason: why it is not simply finished, one sentence with the cure, or "".
        notes: other findings with their cures, one sentence each.
        steps: (K,) steps of the pictures.
        positions: (K, P, 2) points of the map.
        labels: (P,) their classes.
        extent: (K, 2) ends of the histograms' axis.
        positive: (K, bins) counts of positive pairs.
        negative: (K, bins) counts of negative pairs.
        marks: margins and temperature at the end.
        curves: every frame's numbers, as `Recording.curves`.
        ms_per_step: median milliseconds of a step without a frame; NaN when there was none.
        seconds: that the run took.
    """

    config: RunConfig
    state: str
    reason: str
    notes: tuple[str, ...]
    steps: NDArray[np.int32]
    positions: NDArray[np.float32]
    labels: NDArray[np.int32]
    extent: NDArray[np.float64]
    positive: NDArray[np.int32]
    negative: NDArray[np.int32]
    marks: tuple[Mark, ...]
    curves: dict[str, NDArray[np.float64]]
    ms_per_step: float
    seconds: float

    @property
    def lost(self) -> bool:
        """Whether there is no trained encoder at the end."""
        return self.state in ("diverged", "failed")

    def place(self, step: int) -> int:
        """The number of the last picture at or before that step; -1 when there is none."""
        return max(int(np.searchsorted(self.steps, step, side="right")) - 1, min(0, len(self.steps) - 1))

    def value(self, name: str, step: int | None = None) -> float:
        """The last number of a curve at or before a step (by default the last of all); NaN without one."""
        curve, steps = self.curves[name], self.curves["step"]
        known = np.isfinite(curve) if step is None else np.isfinite(curve) & (steps <= step)
        return float(curve[known][-1]) if known.any() else float("nan")


def moments(steps: int, most: int = MOMENTS) -> list[int]:
    """Steps of the pictures of a run that long: among its frames, as evenly as these lie."""
    framed = [step for step in range(steps + 1) if is_frame_step(step) or step == steps]
    return [framed[place] for place in np.unique(np.linspace(0, len(framed) - 1, most).round().astype(int))]


def reduced(recording: Recording, **about: Any) -> CellResult:
    """The result of a recording; `about` gives state, reason, notes, ms_per_step and seconds."""
    wanted, frames = set(moments(recording.config.steps)), recording.frames
    kept = [frame for frame in frames if frame.step in wanted]
    if frames and (not kept or kept[-1] is not frames[-1]):
        kept.append(frames[-1])  # the last moment before it diverged
    points, bins = min(len(recording.labels), POINTS), len(kept[0].histogram.positive) if kept else 0
    return CellResult(
        config=recording.config,
        steps=np.array([frame.step for frame in kept], dtype=np.int32),
        positions=np.array([f.positions[:points] for f in kept], dtype=np.float32).reshape(
            len(kept), points, 2
        ),
        labels=recording.labels[:points],
        extent=np.array([f.histogram[:2] for f in kept], dtype=np.float64).reshape(len(kept), 2),
        positive=np.array([f.histogram.positive for f in kept], dtype=np.int32).reshape(len(kept), bins),
        negative=np.array([f.histogram.negative for f in kept], dtype=np.int32).reshape(len(kept), bins),
        marks=kept[-1].marks if kept else (),
        curves=recording.curves(),
        **about,
    )


def failed(config: RunConfig, reason: str) -> CellResult:
    """The result of a run that could not begin."""
    empty = np.zeros((0, 0), dtype=np.int32)
    return CellResult(
        config,
        "failed",
        reason,
        (),
        steps=np.zeros(0, dtype=np.int32),
        positions=np.zeros((0, 0, 2), dtype=np.float32),
        labels=np.zeros(0, dtype=np.int32),
        extent=np.zeros((0, 2)),
        positive=empty,
        negative=empty,
        marks=(),
        curves={name: np.zeros(0) for name in ("step", *CURVES)},
        ms_per_step=float("nan"),
        seconds=0.0,
    )


def save(results: Sequence[CellResult], path: str | Path | BinaryIO) -> None:
    """Write results as one npz of arrays and a JSON header, without pickle; positions keep 16 bits."""
    heads: list[dict[str, Any]] = []
    arrays: dict[str, NDArray[Any]] = {}
    for number, result in enumerate(results):
        grids = [_grid(positions) for positions in result.positions]
        heads.append(
            {
                "config": result.config.to_dict(),
                "state": result.state,
                "reason": result.reason,
                "notes": list(result.notes),
                "marks": [[m.kind, m.side, m.value, m.symbol, m.label] for m in result.marks],
                "ms_per_step": result.ms_per_step if np.isfinite(result.ms_per_step) else None,
                "seconds": result.seconds,
                "span": [[grid.low, grid.high] for grid in grids],
            }
        )
        arrays |= {f"{number}.{name}": getattr(result, name) for name in ARRAYS}
        arrays[f"{number}.grid"] = np.array([grid.places for grid in grids], dtype=np.uint16)
        arrays[f"{number}.curves"] = np.stack([result.curves[name] for name in ("step", *CURVES)])
    text = json.dumps({"format": FORMAT, "results": heads}, allow_nan=False)
    arrays["header"] = np.frombuffer(text.encode(), dtype=np.uint8)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _grid(positions: NDArray[np.float32]) -> Grid:
    """A map on 16 bits between its smallest and largest value."""
    low, high = (float(positions.min()), float(positions.max())) if positions.size else (0.0, 0.0)
    scale = LEVELS / (high - low) if high > low else 0.0
    return Grid(np.rint((positions.astype(np.float64) - low) * scale).astype(np.uint16), low, high)


def load(path: str | Path | BinaryIO) -> tuple[CellResult, ...]:
    """Read what `save` wrote. Raises ParameterError with one sentence when it is not that."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays["header"].tobytes().decode())
        if header.get("format") != FORMAT:
            raise ParameterError(f"sweep file: format {FORMAT} is read here, got {header.get('format')!r}")
        return tuple(_result(head, arrays, number) for number, head in enumerate(header["results"]))
    except ParameterError:
        raise
    except OSError as error:
        raise ParameterError(f"sweep file: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, KeyError, IndexError, TypeError, ValueError, EOFError) as error:
        raise ParameterError("sweep file: these are no results of a sweep, or the file is damaged") from error


def _result(head: dict[str, Any], arrays: dict[str, NDArray[Any]], number: int) -> CellResult:
    grids, spans = arrays[f"{number}.grid"], head["span"]
    positions = [
        restored(Grid(grid, low, high), LEVELS) for grid, (low, high) in zip(grids, spans, strict=True)
    ]
    points = len(arrays[f"{number}.labels"])
    rows = zip(("step", *CURVES), arrays[f"{number}.curves"], strict=True)
    return CellResult(
        config=RunConfig.from_dict(head["config"]),
        state=head["state"],
        reason=head["reason"],
        notes=tuple(head["notes"]),
        positions=np.array(positions, dtype=np.float32).reshape(len(positions), points, 2),
        marks=tuple(Mark(*mark) for mark in head["marks"]),
        curves=dict(rows),
        ms_per_step=float("nan") if head["ms_per_step"] is None else head["ms_per_step"],
        seconds=head["seconds"],
        **{name: arrays[f"{number}.{name}"] for name in ARRAYS},
    )
