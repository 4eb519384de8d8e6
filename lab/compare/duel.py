"""Two to four runs side by side, in one process and in turns, so that whatever slows one slows all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from lab.config import RunConfig
from lab.recording import Recording
from lab.run import Run
from lab.sweep.cell import Stopwatch, judged, timed
from lab.sweep.reporter import Reporter
from lab.sweep.results import moments
from losslib.errors import ParameterError

LEAST, MOST = 2, 4
SLICE = 5  # steps a turn
MOMENTS = 32


class Contender(NamedTuple):
    """One side of a comparison.

    Args:
        recording: its run at `MOMENTS` steps, without embeddings; pair weights are 0, curves are whole.
        state: "finished", "collapsed" or "diverged".
        reason: why it is not simply finished, one sentence with the cure, or "".
    """

    recording: Recording
    state: str
    reason: str

    @property
    def ms_per_step(self) -> float:
        """Median milliseconds of a step without a frame, where it was trained; NaN when unknown."""
        return float(self.recording.provenance.get("ms_per_step", "nan"))


def duel(configs: Sequence[RunConfig], reporter: Reporter | None = None) -> tuple[Contender, ...]:
    """Train all to their end, a few steps each in turn.

    Args:
        configs: two to four.
        reporter: is told the steps of all together.

    Raises:
        ParameterError: too few or too many, or a config cannot be had with its data.
    """
    if not LEAST <= len(configs) <= MOST:
        raise ParameterError(f"compare: takes {LEAST} to {MOST} runs, got {len(configs)}")
    watches = [Stopwatch(Run(config)) for config in configs]
    going = list(watches)
    while going:
        for watch in list(going):
            if not all(watch.advance() for _ in range(SLICE)):
                going.remove(watch)
            if reporter is not None:
                reporter.tell(sum(one.run.steps_done for one in watches))
    return tuple(contender(watch) for watch in watches)


def contender(watch: Stopwatch) -> Contender:
    """What is kept of a run that has ended."""
    full = watch.run.recording
    wanted = {*moments(full.config.steps, MOMENTS), full.frames[-1].step if full.frames else 0}
    kept = Recording(full.config, full.probe, full.labels, full.class_names)
    kept.chance = full.chance
    for frame in full.frames:
        if frame.step in wanted:
            batch = replace(frame.batch, weights=np.zeros_like(frame.batch.weights), top=())
            kept.add(replace(frame, embeddings=None, batch=batch))
    kept.restore_curves(full.curves())
    verdict = judged(full, watch.milliseconds, 0.0)
    kept.state, kept.reason = ("diverged" if watch.run.diverged else "finished"), full.reason
    kept.provenance = {
        **full.provenance,
        **timed(watch.milliseconds),
        "state": verdict.state,
        "verdict": verdict.reason,
    }
    return Contender(kept, verdict.state, verdict.reason)
