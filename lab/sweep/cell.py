"""One cell of a sweep, as a worker process trains it."""

from __future__ import annotations

import io
import math
import time
from statistics import median
from typing import NamedTuple

from lab.config import RunConfig
from lab.insights import Insight, insights
from lab.recording import Recording
from lab.run import Run
from lab.settings import sentence
from lab.sweep.reporter import Reporter
from lab.sweep.results import CellResult, failed, reduced
from losslib.errors import ParameterError

# findings after which a cell counts as collapsed
RUINED = ("collapse", "margin_collapse", "hard_negatives", "vanished_gradient")


class Trained(NamedTuple):
    """A cell's result, and its run file when that was asked for, else b""."""

    result: CellResult
    file: bytes


def train(config: RunConfig, reporter: Reporter | None = None, with_file: bool = False) -> Trained:
    """Train a config to its end. What it cannot have becomes the result's reason.

    Args:
        config: what to train.
        reporter: is told how far it is.
        with_file: whether the run file comes along.
    """
    begun = time.perf_counter()
    try:
        run = Run(config)
        watch = Stopwatch(run)
        while watch.advance():
            if reporter is not None:
                reporter.tell(run.steps_done)
    except ParameterError as error:
        return Trained(failed(config, sentence(str(error))), b"")
    seconds = time.perf_counter() - begun
    result = judged(run.recording, watch.milliseconds, seconds)
    if not with_file:
        return Trained(result, b"")
    run.recording.state = "diverged" if run.diverged else "finished"
    run.recording.provenance |= {"seconds": seconds, **timed(watch.milliseconds)}
    file = io.BytesIO()
    run.recording.save(file)
    return Trained(result, file.getvalue())


class Stopwatch:
    """Drives a run and times the steps that are nothing but a step: those without a frame."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._times: list[float] = []
        # what a core spends on it, so that other work on the machine counts as little as it can
        fine = time.get_clock_info("thread_time").resolution < 1e-5 and run.device.type == "cpu"
        self._clock = time.thread_time if fine else time.perf_counter
        self._begun = False

    def advance(self) -> bool:
        """One step, or frame 0 at first; False when the run has ended."""
        if not self._begun:
            self._begun = True
            self.run.start()
            return not self.run.finished
        begun = self._clock()
        if self.run.step() is None and not self.run.diverged:
            self._times.append(self._clock() - begun)
        return not self.run.finished

    @property
    def milliseconds(self) -> float:
        """Median of a step without a frame; NaN when there was none."""
        return 1000 * median(self._times) if self._times else float("nan")


def timed(milliseconds: float) -> dict[str, float]:
    """The entry of a run file that says how long a step took, if that is known."""
    return {"ms_per_step": milliseconds} if math.isfinite(milliseconds) else {}


def judged(recording: Recording, milliseconds: float, seconds: float) -> CellResult:
    """The result of a recording, with what its last frame says."""
    state, reason, notes = "finished", "", []
    for found in insights(recording):
        if found.cure is None:
            continue
        if found.kind == "divergence":
            state, reason = "diverged", found.sentence
        elif found.kind in RUINED and state == "finished":
            state, reason = "collapsed", told(found)
        else:
            notes.append(told(found))
    return reduced(
        recording,
        state=state,
        reason=reason,
        notes=tuple(notes),
        ms_per_step=milliseconds,
        seconds=seconds,
    )


def told(found: Insight) -> str:
    """A finding and its cure."""
    return f"{found.sentence} {found.cure.text}" if found.cure else found.sentence
