"""What people ask of a run, from any thread: noted under a lock, done by the worker at its next slice."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datasets import Dataset
from lab.audience import Watched
from lab.config import Event, RunConfig, check_event, folded, in_force
from lab.glances import Glances
from lab.limits import estimated_bytes
from lab.recording import Recording
from lab.run import Run
from losslib.errors import ParameterError
from losslib.types import Mark

if TYPE_CHECKING:
    from lab.scheduler import Scheduler


class Requested(Watched):
    """The half of a `LiveRun` that people use: where it stands, and what it is asked to do."""

    def __init__(
        self, scheduler: Scheduler, config: RunConfig, owner: str, shown: Recording | None = None
    ) -> None:
        super().__init__(scheduler.clock)
        self.token = secrets.token_urlsafe(16)
        self.owner = owner
        self.state, self.reason = "preparing", ""
        self.step, self.version = 0, 0
        self.recording: Recording | None = None
        self.data: Dataset | None = None
        self.probe: NDArray[np.integer[Any]] | None = None
        self.marks: tuple[Mark, ...] = ()
        self.glances = Glances(scheduler.clock)
        self.due = scheduler.clock()
        self._scheduler = scheduler
        self._config = config
        self._speed: float | None = None
        self._run: Run | None = None
        self._shown = shown
        self._changes: dict[str, Any] = {}
        self._by_hand = 0
        self._until: int | None = None
        self._total = config.steps
        self._life = 0  # grows when it begins again: what an older life still tells is of no account
        self._stepping = False  # whether the worker makes a step right now
        self._pausing: str | None = None  # why it pauses once that step has ended

    @property
    def config(self) -> RunConfig:
        """The config with the changes made so far, those that wait for the next step included."""
        with self._lock:
            config = self._config
            for name, value in self._changes.items():
                config = config.with_event(Event(self._next_step, name, value))
            same = config.steps == self._total or self._shown is not None
            return config if same else config.replace(steps=self._total)

    @property
    def _next_step(self) -> int:
        """The step from which a change holds: one that is under way goes on as it began."""
        return self.step + 1 + (self._run is not None and self._run.under_way is not None)

    @property
    def shown(self) -> Recording | None:
        """The finished recording that is shown until Play or Step trains its settings live; else None."""
        return self._shown

    @property
    def total(self) -> int:
        """Number of steps asked for."""
        return self._total

    @property
    def speed(self) -> float | None:
        """Steps a second, or None for as fast as it goes."""
        return self._speed

    @speed.setter
    def speed(self, value: float | None) -> None:
        if value is not None and not value > 0:
            raise ParameterError(f"speed must be a number of steps a second > 0, or None, got {value!r}")
        self._speed = value
        self._scheduler.wake()

    def play(self, until: int | None = None) -> None:
        """Train on; a recording begins live; a finished, diverged or failed run stays as it is.

        Args:
            until: the step to pause at, saying so; with a frame there. A step already made changes nothing.
        """
        self._leave_recording()
        with self._lock:
            self.sign_of_life()
            self._pausing = None
            if self.state not in ("ready", "paused", "preparing", "queued"):
                return
            self._by_hand = -1 if self.state in ("preparing", "queued") else 0
            self._until = until
            if not self._by_hand:
                self._set("running")
        self._scheduler.wake()

    def pause(self, reason: str = "") -> None:
        """Stop before the next step. While one is being made it is "running": "paused" is told at its end."""
        with self._lock:
            self._by_hand, self._until = 0, None
            if self.state == "running" and self._stepping:
                self._pausing = reason
            elif self.state == "running":
                self._set("paused", reason)

    def advance(self, n: int = 1) -> None:
        """Make n steps and pause; the last one gives a frame."""
        self._leave_recording()
        with self._lock:
            self.sign_of_life()
            if self.state not in ("queued", "preparing", "ready", "paused", "running"):
                return
            self._by_hand, self._until = max(self._by_hand, 0) + n, None
            if self.state not in ("queued", "preparing"):
                self._set("paused")
        self._scheduler.wake()

    def reset(self, config: RunConfig | None = None, recording: Recording | None = None) -> None:
        """Begin again from step 0 and the seed, with another config or with the values now in force.

        Args:
            config: what to train.
            recording: what to show until it is trained.

        Raises:
            LimitError: the config asks for more than the scheduler allows.
        """
        config = folded(self.config) if config is None else config
        self._scheduler.check(config)
        with self._lock:
            self.sign_of_life()
            if self.state == "closed":
                return
            lives_on = (recording is None) == (self._shown is None)
            placed = self._shown is None and self.state != "queued"
            grows = placed and estimated_bytes(config) > estimated_bytes(self._config)
            former = self._as_it_stands()
            self._shown = recording
            self._config, self._total = config, config.steps
            self._run, self.step, self._by_hand, self._until = None, 0, 0, None
            self._changes, self._life = {}, self._life + 1
            self._begun_again(former)
            waits = self.state == "queued" and recording is None
            self._set("queued" if waits else "preparing")
        if not lives_on or grows:
            self._scheduler.place(self.token, held=placed)
        self._scheduler.wake()

    def intend(self, config: RunConfig) -> None:
        """While a recording is shown: what Play will train.

        Raises:
            LimitError: the config asks for more than the scheduler allows.
        """
        self._scheduler.check(config)
        with self._lock:
            if self._shown is not None:
                self._config = config

    def _leave_recording(self) -> None:
        if self._shown is not None:
            self.reset(self._config)

    def change(self, name: str, value: Any) -> None:
        """Set a loss option or "lr" from the next step on, recorded as an event.

        Raises:
            ParameterError: not an option that may change, or a value outside its domain.
        """
        with self._lock:
            event = check_event(Event(self._next_step, name, value), self._config.loss)
            if in_force(self.config)[name] == event.value:
                return
            self._changes[name] = event.value
            self._bump()
        self._scheduler.wake()

    def extend(self, more: int) -> None:
        """Let the run be that many steps longer; a finished one can then play on.

        Raises:
            LimitError: more steps than the scheduler allows.
        """
        self._scheduler.check(self.config.replace(steps=self._total + more))
        with self._lock:
            self._total += more
            if self.state == "finished":
                self._set("paused")
            else:
                self._bump()
        self._scheduler.wake()

    def _as_it_stands(self) -> Any:
        """What `reset` is about to leave behind; see `lab.former`."""
        return None

    def _begun_again(self, former: Any) -> None:
        """Within `reset`, once all is at its beginning."""

    def _set(self, state: str, reason: str = "") -> None:
        self.state, self.reason, self._pausing = state, reason, None
        self._bump()

    def _bump(self) -> None:
        self.version += 1
        self.audience.tell(self)
