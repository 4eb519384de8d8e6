"""The command line of sweeps: `python -m lab.sweep config.json --out results/`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lab.command import INTERRUPTED, OneLine, Progress, refused
from lab.sweep.cell import Trained
from lab.sweep.desk import Desk
from lab.sweep.folder import Folder
from lab.sweep.job import Job, Task
from lab.sweep.plan import Cell, Plan, read_plan
from lab.sweep.ranking import Ranked, Spread, ranking
from lab.sweep.results import CellResult
from lab.sweep.work import results_of, tasks_of
from losslib.errors import ParameterError

EXAMPLE = (
    '{"base": {"data": "digits", "steps": 200}, '
    '"vary": {"ContrastiveLoss.neg_margin": [0.5, 1.0, 1.5]}, "seeds": [0, 1, 2]}'
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0, or 1 when a run diverged or failed, 2 for a bad config or option, 130 interrupted."""
    try:
        options = _parser().parse_args(arguments)
        plan = read_plan(_text(options.config))
        folder = Folder(options.out, plan)
        return _sweep(plan, folder, options)
    except (ParameterError, OSError) as error:
        return refused(error)


def _parser() -> argparse.ArgumentParser:
    parser = OneLine(
        prog="python -m lab.sweep",
        description="Train a grid of runs over cores or a Dask cluster and rank it by held-out quality.",
        epilog=f"An example of a config: {EXAMPLE}. Started again with the same folder, it goes on where "
        "it stopped.",
        allow_abbrev=False,
    )
    parser.add_argument("config", type=Path, help='JSON with "base" (settings), "vary" (lists) and "seeds"')
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the results go")
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="processes; by default all cores but one")
    parser.add_argument("--dask", default="", metavar="ADDRESS", help="a Dask cluster, tcp://host:8786")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"config: cannot read {path} ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ParameterError(f"config: {path} is not a text file in UTF-8") from None


def _sweep(plan: Plan, folder: Folder, options: argparse.Namespace) -> int:
    """Train what is missing, writing as it comes."""
    before = folder.finished()
    if before and not options.quiet:
        print(f"{len(before)} of {len(plan.cells)} runs are there already.", file=sys.stderr)
    cells = {cell.config: cell for cell in plan.cells}
    known = [(cell.config, Trained(result, b"")) for cell, result in before.items()]

    def write(task: Task, trained: Trained) -> None:
        folder.add(cells[task.key], trained)  # type: ignore[index]

    desk = Desk(slots=options.jobs)
    try:
        job = desk.open(plan, tasks_of(plan, with_file=True), options.dask, write, known)
        interrupted = _watch(desk, job, plan, folder, options.quiet)
    finally:
        desk.stop()
    done = results_of(plan, job)
    folder.summarise(done)
    if job.reason:
        raise ParameterError(f"--out: {job.reason.removesuffix('.')}")
    _tell(done)
    if interrupted:
        print(f"Interrupted: {len(done)} of {len(plan.cells)} runs are done.", file=sys.stderr)
        return INTERRUPTED
    return 1 if any(result.lost for _, result in done) else 0


def _watch(desk: Desk, job: Job, plan: Plan, folder: Folder, quiet: bool) -> bool:
    """Until the job has ended; whether it was interrupted."""
    bar = Progress(job.total_steps, sys.stderr, quiet)
    written = -1
    try:
        while True:
            ended = job.wait(0.5, job.version)
            if job.done != written:
                written = job.done
                folder.summarise(results_of(plan, job))
            under_way = desk.under_way(job)
            left = job.remaining(under_way)
            bar.text = f"{job.done} of {len(job.tasks)} runs" + (f", {duration(left)} left" if left else "")
            bar.show(job.done_steps(under_way), None)
            if ended:
                bar.close()
                return False
    except KeyboardInterrupt:
        desk.cancel(job)
        bar.close()
        return True


def _tell(done: list[tuple[Cell, CellResult]]) -> None:
    """The ranking as a table, and the reasons of runs that went wrong."""
    for place, one in enumerate(ranking(done), start=1):
        print(line(place, one))
    for cell, result in done:
        if result.reason:
            seed = cell.config.seed
            print(f"{cell.label}, seed {seed}: {result.state}. {result.reason}", file=sys.stderr)


def line(place: int, one: Ranked) -> str:
    """One setting of the ranking."""
    troubles = [f"{n} {what}" for n, what in ((one.lost, "lost"), (one.collapsed, "collapsed")) if n]
    end = f" ({', '.join(troubles)})" if troubles else ""
    return f"{place}. {one.label}: recall@1 {spelled(one.recall)}, MAP@R {spelled(one.map_at_r)}{end}"


def spelled(spread: Spread) -> str:
    """Mean, and least to largest over seeds."""
    if spread.mean != spread.mean:
        return "none"
    if spread.low == spread.high:
        return f"{spread.mean:.3f}"
    return f"{spread.mean:.3f} ({spread.low:.3f} to {spread.high:.3f})"


def duration(seconds: float) -> str:
    """A time to wait, in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
