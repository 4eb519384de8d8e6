"""The command line of the engine: `python -m lab.run --data mnist --loss ContrastiveLoss --json out.json`."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import datasets
from lab.config import RunConfig
from lab.frame import Frame
from lab.links import EVENTS, from_settings, qualified
from lab.recording import Recording
from lab.settings import NO_MINER, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param

BAR = 30
INTERRUPTED = 130  # what shells say of a program ended by Ctrl-C
PRINTED = ("loss", "active_share", "recall_at_1", "map_at_r")


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as the options say; exit status 0, or 2 for a bad option, 1 when training diverged.

    Interrupted (Ctrl-C): status 130, and what was trained until then is written.
    """
    try:
        options = _parser().parse_args(_with_own_loss(sys.argv[1:] if arguments is None else arguments))
        if options.list:
            print(listing())
            return 0
        config = from_settings(_texts(options))
        if late := [event.step for event in config.events if event.step > config.steps]:
            raise ParameterError(f"--events: step {late[0]} is after the last step, {config.steps}")
        target = _writable("--json", options.json)
        recording = _writable("--recording", options.recording)
        return _train(config, target, recording, quiet=options.quiet)
    except (ParameterError, OSError) as error:
        return refused(error)


def _with_own_loss(arguments: Sequence[str]) -> list[str]:
    """`--loss package.module:Class` adds that class to the catalogue; from then on it goes by its name."""
    given = list(arguments)
    for at, text in enumerate(given):
        before = given[at - 1] if at else ""
        option, equals, value = text.partition("=")
        target = text if before == "--loss" else value if option == "--loss" and equals else ""
        if ":" in target:
            name = catalog.add(target)
            settings.cache_clear()
            given[at] = name if before == "--loss" else f"--loss={name}"
    return given


class OneLine(argparse.ArgumentParser):
    """A parser whose errors are ours: one line, without the usage."""

    def error(self, message: str) -> Any:
        """Raises ParameterError."""
        raise ParameterError(f"{message}; see --help")


def refused(error: ParameterError | OSError) -> int:
    """Says in one line why nothing can be done; the exit status."""
    why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
    print(f"error: {why}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = OneLine(
        prog="python -m lab.run",
        description="Train an encoder with a loss and record it.",
        allow_abbrev=False,
    )
    for name, param in settings().items():
        meaning = f"{param.meaning} ({param.describe()}; default {param.format(param.default)})"
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=meaning.replace("%", "%%"))
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of loss, data or miner: neg_margin=0.8, or in full ContrastiveLoss.neg_margin=0.8",
    )
    parser.add_argument("--events", help="changes while it trains: 40:neg_margin=0.5,60:lr=0.001")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write config, frames and final here")
    parser.add_argument("--recording", type=Path, metavar="FILE", help="write the run file here")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--list", action="store_true", help="print data sets, losses and their options")
    return parser


def _texts(options: argparse.Namespace) -> dict[str, str]:
    """The settings given, under the names that links use."""
    texts = {name: text for name in settings() if (text := getattr(options, name)) is not None}
    data = texts.get("data", str(settings()["data"].default))
    loss = texts.get("loss", str(settings()["loss"].default))
    datasets.get(data), catalog.get(loss)
    miner = texts.get("miner", NO_MINER)
    miner = miner if miner in catalog.miners() else NO_MINER  # refused with the other settings
    if options.events is not None:
        texts[EVENTS] = options.events
    for assignment in options.set:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise ParameterError(f"--set takes NAME=VALUE, got {assignment!r}")
        texts[qualified(name.strip(), data, loss, miner)] = value.strip()
    return texts


def _writable(option: str, path: Path | None) -> Path | None:
    """The path, refused before training rather than after it."""
    if path is None:
        return None
    if not path.resolve().parent.is_dir():
        raise ParameterError(f"{option}: there is no folder {path.resolve().parent}")
    there = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise ParameterError(f"{option}: cannot write {path} ({error.strerror})") from None
    if not there:
        path.unlink()
    return path


def _train(config: RunConfig, target: Path | None, recording: Path | None, quiet: bool) -> int:
    from lab.run import Run

    run = Run(config)
    bar = Progress(config.steps, sys.stderr, quiet)
    interrupted = False
    try:
        for frame in run:
            bar.show(run.steps_done, frame)
    except KeyboardInterrupt:
        interrupted = True
    bar.close()
    frames = rows(run.recording)
    result = {
        "config": config.to_dict(),
        "frames": frames,
        "final": {**(frames[-1] if frames else {}), "steps": run.steps_done, "reason": run.reason or None},
        "provenance": run.recording.provenance,
    }
    if target is not None:
        target.write_text(json.dumps(result, allow_nan=False, indent=1) + "\n", encoding="utf-8")
    if recording is not None:
        run.recording.save(recording)
    if frames:
        parts = [f"{name.replace('_', ' ')} {_number(frames[-1][name])}" for name in PRINTED]
        print(f"step {frames[-1]['step']}: {', '.join(parts)} (chance {run.recording.chance:.2f})")
    if run.reason:
        print(run.reason, file=sys.stderr)
    if interrupted:
        print(f"Interrupted at step {run.steps_done} of {config.steps}.", file=sys.stderr)
        return INTERRUPTED
    return 1 if run.diverged else 0


def rows(recording: Recording) -> list[dict[str, Any]]:
    """The numbers of every frame, as JSON can hold them: null where not computed or not finite."""
    curves = recording.curves()
    return [
        {
            name: int(value) if name == "step" else _finite(float(value))
            for name, value in zip(curves, row, strict=True)
        }
        for row in zip(*curves.values(), strict=True)
    ]


def listing() -> str:
    """Data sets, losses and their options, from their declarations."""
    lines = ["Settings:"]
    lines += [_option(f"--{name.replace('_', '-')}", param) for name, param in settings().items()]
    lines += ["", "Data sets:"]
    for spec in datasets.catalog().values():
        lines.append(f"  {spec.name}: {spec.summary}")
        lines += [_option(f"  --set {spec.name}.{name}", param) for name, param in spec.options.items()]
    lines += ["", "Losses:"]
    for name, loss in catalog.losses().items():
        lines.append(f"  {name}: {loss.summary}")
        lines += [_option(f"  --set {name}.{option}", param) for option, param in loss.params.items()]
    lines += ["", "Miners:"]
    for name, miner in catalog.miners().items():
        lines.append(f"  {name}: {miner.summary}")
        lines += [_option(f"  --set {name}.{option}", param) for option, param in miner.params.items()]
    return "\n".join(lines)


def _option(spelling: str, param: Param) -> str:
    meaning = f"; {param.meaning}" if param.meaning else ""
    return f"  {spelling}: {param.describe()} (default {param.format(param.default)}){meaning}"


class Progress:
    """A bar on a stream: redrawn on a terminal, a few plain lines elsewhere."""

    def __init__(self, total: int, stream: TextIO, quiet: bool) -> None:
        self.total, self.stream, self.quiet = total, stream, quiet
        self.shown = -1
        self.levels = 200 if stream.isatty() else 5
        self.text = ""

    def show(self, step: int, frame: Frame | None) -> None:
        """Draw when the bar has moved."""
        if frame is not None:
            self.text = f"loss {_number(frame.loss)}  recall@1 {_number(frame.quality['recall_at_1'])}"
        level = step * self.levels // self.total
        if self.quiet or level == self.shown:
            return
        self.shown = level
        full = step * BAR // self.total
        bar = f"[{'#' * full}{'.' * (BAR - full)}] {step}/{self.total}  {self.text}"
        end = "" if self.stream.isatty() else "\n"
        start = "\r" if self.stream.isatty() else ""
        print(f"{start}{bar}", end=end, file=self.stream, flush=True)

    def close(self) -> None:
        """Leave the line."""
        if not self.quiet and self.stream.isatty():
            print(file=self.stream)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "none" if value is None or not math.isfinite(value) else f"{value:.3f}"
