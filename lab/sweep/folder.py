"""A results folder: one run file a run, and summary.csv with one row a run; a sweep resumes from it."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.recording import Recording
from lab.sweep.cell import Trained, judged
from lab.sweep.plan import Cell, Plan
from lab.sweep.results import CellResult
from losslib.errors import ParameterError

SUMMARY, RUNS = "summary.csv", "runs"
NUMBERS = (
    "recall_at_1",
    "map_at_r",
    "alignment",
    "uniformity",
    "active_share",
    "loss",
    "spread",
    "effective_rank",
    "mean_cosine",
)


class Folder:
    """The results of one plan in a folder.

    Args:
        path: made when it is missing.
        plan: the sweep.

    Raises:
        ParameterError: it cannot be written.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        try:
            (path / RUNS).mkdir(parents=True, exist_ok=True)
            probe = path / RUNS / ".writable"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ParameterError(f"--out: cannot write {path} ({error.strerror})") from None

    def file_of(self, cell: Cell) -> Path:
        """The run file of a cell; its name says what it is, and a digest of the config makes it unique."""
        digest = hashlib.sha256(cell.config.to_json().encode()).hexdigest()[:8]
        varied = [f"{n.rpartition('.')[2]}={text}" for n, text in cell.varied if n != "loss"]
        words = "-".join([cell.config.loss, *varied, f"seed{cell.config.seed}", digest])
        return self.path / RUNS / (re.sub(r"[^\w.=+-]", "_", words) + ".npz")

    def finished(self) -> dict[Cell, CellResult]:
        """Cells that have a run file of exactly their config. What cannot be read is trained again."""
        found = {}
        for cell in self.plan.cells:
            file = self.file_of(cell)
            if not file.exists():
                continue
            try:
                recording = Recording.load(file)
            except ParameterError:
                continue
            if recording.config == cell.config:
                made = recording.provenance
                times = (float(made.get(name, math.nan)) for name in ("ms_per_step", "seconds"))
                found[cell] = judged(recording, *times)
        return found

    def add(self, cell: Cell, trained: Trained) -> None:
        """Write a run file whole or not at all."""
        if trained.file:
            replace_file(self.file_of(cell), trained.file)

    def summarise(self, done: Sequence[tuple[Cell, CellResult]]) -> None:
        """Write summary.csv anew, in the order of the plan."""
        names = [name for name, _ in self.plan.vary if name != "loss"]
        head = ["loss_name", *names, "seed", "state", *NUMBERS, "step", "ms_per_step", "seconds", "reason"]
        text = io.StringIO()
        table = csv.DictWriter(text, [*head, "file"], restval="", lineterminator="\n")
        table.writeheader()
        for cell, result in done:
            table.writerow({**row(cell, result), "file": self._named(cell)})
        replace_file(self.path / SUMMARY, text.getvalue().encode())

    def _named(self, cell: Cell) -> str:
        file = self.file_of(cell)
        return file.relative_to(self.path).as_posix() if file.exists() else ""


def row(cell: Cell, result: CellResult) -> dict[str, Any]:
    """What a table says of one run; a number that does not exist is empty."""
    varied = {name: text for name, text in cell.varied if name != "loss"}
    numbers = {name: _number(result.value(name)) for name in NUMBERS}
    return {
        "loss_name": cell.config.loss,
        **varied,
        "seed": cell.config.seed,
        "state": result.state,
        **numbers,
        "step": int(result.curves["step"][-1]) if len(result.curves["step"]) else "",
        "ms_per_step": _number(result.ms_per_step, 4),
        "seconds": _number(result.seconds, 4),
        "reason": result.reason,
    }


def replace_file(path: Path, content: bytes) -> None:
    """Write beside it, then put it in its place, so that no reader meets half a file."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    os.replace(beside, path)


def _number(value: float, digits: int = 0) -> str:
    if not math.isfinite(value):
        return ""
    return f"{value:.{digits}g}" if digits else repr(value)
