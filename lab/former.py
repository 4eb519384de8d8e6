"""What a run was before it was begun again or continued from another frame, so that nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lab.checkpoints import Checkpoints
from lab.config import RunConfig
from lab.fork import Fork, forked
from lab.glances import Glances
from lab.inquiry import Inquired
from lab.shelf import Shelf
from losslib.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from datasets import Dataset
    from lab.recording import Recording
    from lab.run import Run
    from lab.scheduler import Scheduler
    from losslib.types import Mark

REPLAYED = "On the way back to step {step}: {done} of {all} steps made again."


class Former(NamedTuple):
    """A run as it stood."""

    run: Run | None
    shown: Recording | None
    config: RunConfig
    total: int
    step: int
    state: str
    reason: str
    recording: Recording | None
    data: Dataset | None
    probe: NDArray[np.integer[Any]] | None
    marks: tuple[Mark, ...]
    checkpoints: Checkpoints

    @property
    def nbytes(self) -> int:
        """Memory of its recording and its checkpoints; data and a recording that is shown are shared."""
        frames = self.recording.frames if self.recording is not None and self.shown is None else []
        held = sum(f.nbytes + f.embedding_bytes for f in frames)
        return held + sum(one.nbytes for one in self.checkpoints.kept)


class Kept(Inquired):
    """A run that can be continued from any of its frames, and whose former selves can be brought back.

    Attributes:
        checkpoints: where it stood at a few of its steps.
    """

    def __init__(
        self, scheduler: Scheduler, config: RunConfig, owner: str, shown: Recording | None = None
    ) -> None:
        super().__init__(scheduler, config, owner, shown)
        self.checkpoints = Checkpoints()
        self._fork: Fork | None = None
        self._ordered: tuple[Fork, Checkpoints] | None = None
        self._shelf: Shelf[Former] = Shelf()

    @property
    def formers(self) -> int:
        """How many former runs `bring_back` shows again, one after the other."""
        return len(self._shelf.former)

    @property
    def laters(self) -> int:
        """How many runs that `bring_back` left `bring_forward` shows again."""
        return len(self._shelf.later)

    def continue_from(self, step: int, values: Mapping[str, Any]) -> None:
        """Go on from a frame with these knobs; what came after it is kept as a former run.

        The steps up to there are made again, from the last checkpoint before it; then it trains on.

        Args:
            step: of one of the recording's frames, at least 1.
            values: loss options and "lr"; see `lab.fork.forked`.

        Raises:
            ParameterError: there is no frame of that step.
        """
        with self._lock:
            recording, shown = self.recording, self._shown
            if recording is None or not any(frame.step == step > 0 for frame in recording.frames):
                raise ParameterError(f"this run has no frame of step {step} to continue from")
            basis = self.config if shown is None else shown.config.replace(steps=self._config.steps)
            config = forked(basis, step, values)
            if config.steps <= step:
                raise ParameterError(f"step {step} is the last one of this run; Play goes on from there")
            checkpoint = None if shown is not None else self.checkpoints.before(step)
            checkpoints = Checkpoints() if shown is not None else self.checkpoints.until(step)
            fork = Fork(config, step, None if shown is not None else recording, checkpoint)
            self._ordered = (fork, checkpoints)
        self.reset(config)

    def bring_back(self) -> None:
        """Show the last former run again, as it stood; the present one comes forward again."""
        self._exchange(self._shelf.back)

    def bring_forward(self) -> None:
        """Take the last `bring_back` back."""
        self._exchange(self._shelf.forward)

    def _exchange(self, other: Callable[[Former | None], Former | None]) -> None:
        with self._lock:
            if self.state == "closed":
                return
            present = self._run is not None or self._shown is not None
            former = other(self._standing() if present else None)
            if former is None:
                return
            lives_on = (former.shown is None) == (self._shown is None)
            self.sign_of_life()
            self._fork, self._life = None, self._life + 1
            self._run, self._shown, self._config, self._total = former[:4]
            # a step that was under way when it was put aside has been made since
            self.step = former.step if former.run is None else former.run.steps_done
            self.recording, self.data = former.recording, former.data
            self.probe, self.marks, self.checkpoints = former.probe, former.marks, former.checkpoints
            self.glances, self._changes, self._until = Glances(self._clock), {}, None
            self._by_hand = self._phases = 0
            self.phase_note = None
            self._set(former.state, former.reason)
        if not lives_on:
            self._scheduler.place(self.token)
        self._scheduler.wake()

    def _begun_again(self, former: Former | None) -> None:
        """What was trained or shown until now becomes the last of the former runs."""
        self._shelf.put(former)
        self._fork, self.checkpoints = None, Checkpoints()
        ordered, self._ordered = self._ordered, None
        if ordered is not None and ordered[0].config is self._config:
            self._fork, self.checkpoints = ordered
            self.step, self._by_hand = self._fork.step, -1  # it trains on once it is there

    def _let_go(self) -> None:
        """Nothing is kept any more: the run is closed."""
        self._fork = None
        self._shelf.clear()
        self.checkpoints = Checkpoints()

    def _as_it_stands(self) -> Former | None:
        """The run to come back to; None where nothing was trained or shown yet."""
        if self.state in ("queued", "preparing", "closed", "failed") or not (self.step or self._shown):
            return None
        return self._standing()

    def _standing(self) -> Former:
        """The run as it is now, at rest."""
        state = "paused" if self.state == "running" else self.state
        return Former(
            self._run,
            self._shown,
            self.config,
            self._total,
            self.step,
            state,
            self.reason,
            self.recording,
            self.data,
            self.probe,
            self.marks,
            self.checkpoints,
        )

    def _go_back(self, quantum: float) -> Run | None:
        """One slice of the way to the frame that is continued from; the run once it is there."""
        with self._lock:
            fork = self._fork
        if fork is None:
            return None
        end = self._scheduler.clock() + quantum
        while not fork.arrived:
            fork.advance()
            if self._scheduler.clock() >= end:
                break
        with self._lock:
            if self._fork is not fork:
                return None  # reset, closed or brought back meanwhile
            if not fork.arrived:
                done, steps = fork.done - fork.first, fork.step - fork.first
                reason = REPLAYED.format(step=fork.step, done=done, all=steps)
                if reason != self.reason:
                    self._set("preparing", reason)
                return None
            self._fork = None
        return fork.run
