"""A run that people watch: its state, what they ask of it, and what it tells them."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import datasets
from datasets import Dataset
from lab.audience import Watched
from lab.config import Event, RunConfig, check_event, folded, in_force
from lab.glances import Glances
from lab.recording import Recording
from lab.run import Run
from lab.settings import sentence
from losslib.errors import ParameterError
from losslib.types import Mark

if TYPE_CHECKING:
    from lab.scheduler import Scheduler

UNWATCHED = "Paused, because nobody was watching; Play goes on."
_LOG = logging.getLogger("lab")


class LiveRun(Watched):
    """One run of a scheduler. Every method may be called from any thread and returns at once.

    The worker thread alone touches the `Run`; what is asked for is noted under a lock and done at the
    next slice. `version` grows on every change, and subscribers are told.

    Attributes:
        token: unguessable name.
        owner: whose run it is, for limits.
        state: "queued", "preparing", "recorded", "ready", "running", "paused", "finished", "diverged",
            "failed" or "closed".
        reason: one sentence on why it is in that state, or "".
        step: updates made so far.
        recording: frames so far, or None before the first.
        data: the data set, once loaded.
        probe: data set indices of the map's points, once loaded.
        speed: steps a second, or None for as fast as it goes. It never changes what is computed.
        marks: margins and temperature in force.
        glances: what was seen between frames.
        version: number of changes so far.
    """

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
        self._total = config.steps

    def __repr__(self) -> str:
        return f"LiveRun({self.token[:6]}, {self.state}, step {self.step})"

    # What people ask for.

    @property
    def config(self) -> RunConfig:
        """The config with the changes made so far, those that wait for the next step included."""
        with self._lock:
            config = self._config
            for name, value in self._changes.items():
                config = config.with_event(Event(self.step + 1, name, value))
            same = config.steps == self._total or self._shown is not None
            return config if same else config.replace(steps=self._total)

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

    def play(self) -> None:
        """Train on; a recording begins live; a finished, diverged or failed run stays as it is."""
        self._leave_recording()
        with self._lock:
            self.sign_of_life()
            if self.state not in ("ready", "paused", "preparing", "queued"):
                return
            self._by_hand = -1 if self.state in ("preparing", "queued") else 0
            if not self._by_hand:
                self._set("running")
        self._scheduler.wake()

    def pause(self, reason: str = "") -> None:
        """Stop before the next step."""
        with self._lock:
            self._by_hand = 0
            if self.state == "running":
                self._set("paused", reason)

    def advance(self, n: int = 1) -> None:
        """Make n steps and pause; the last one gives a frame."""
        self._leave_recording()
        with self._lock:
            self.sign_of_life()
            if self.state not in ("queued", "preparing", "ready", "paused", "running"):
                return
            self._by_hand = max(self._by_hand, 0) + n
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
            self._shown = recording
            self._config, self._total = config, config.steps
            self._run, self.step, self._by_hand = None, 0, 0
            self._changes = {}
            waits = self.state == "queued" and recording is None
            self._set("queued" if waits else "preparing")
        if not lives_on:
            self._scheduler.place(self.token)
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
            event = check_event(Event(self.step + 1, name, value), self._config.loss)
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

    # What the worker does.

    def wants_work(self, now: float) -> bool:
        """Whether there is something to do now."""
        if self.state == "preparing":
            return True
        if self._run is None:
            return False
        unseen = self.unwatched_since is None and self.glances.owed(self._run)
        if self._changes or (self.state == "paused" and (self._by_hand > 0 or unseen)):
            return True
        return self.state == "running" and (self._speed is None or now >= self.due)

    def work(self, quantum: float, max_steps: int) -> None:
        """One slice: a few steps at most, and no more than one frame. Never raises."""
        try:
            if self.state == "preparing":
                self._prepare()
            else:
                self._slice(quantum, max_steps)
        except ParameterError as error:
            self.fail(sentence(str(error)))
        except Exception:
            number = secrets.token_hex(3)
            _LOG.exception("run %s failed (number %s)", self.token[:6], number)
            self.fail(f"This run stopped at an error of the program (number {number}); Reset begins again.")

    def fail(self, reason: str) -> None:
        """End in a state that people see."""
        with self._lock:
            self._set("failed", reason)

    def close(self, reason: str) -> None:
        """End for good."""
        with self._lock:
            self._run = None
            self._changes = {}
            self._set("closed", reason)
            self.audience.leave()

    def set_state(self, state: str, reason: str = "") -> None:
        """For the scheduler: queued, or preparing once there is room."""
        with self._lock:
            if (state, reason) != (self.state, self.reason):
                self._set(state, reason)

    def _prepare(self) -> None:
        with self._lock:
            config, shown = self._config, self._shown
            self.glances = Glances(self._clock)
        if shown is not None:
            self._show(shown)
            return
        run = Run(config)
        run.start()
        with self._lock:
            if self._config is not config or self.state != "preparing":
                return  # reset or closed meanwhile
            self._run = run
            self.recording, self.data, self.probe = run.recording, run.data, run.probe.index
            self.marks = run.marks
            asked, self._by_hand = self._by_hand, max(self._by_hand, 0)
            self._settle("running" if asked < 0 else "paused" if asked else "ready")

    def _show(self, shown: Recording) -> None:
        config, latest = shown.config, shown.frames[-1]
        data = datasets.load(config.data, config.seed, **config.data_values)
        with self._lock:
            if self._shown is shown and self.state == "preparing":
                self.recording, self.data, self.probe = shown, data, shown.probe
                self.step, self.marks, self._total = latest.step, latest.marks, config.steps
                self._set("recorded", shown.reason)

    def _slice(self, quantum: float, max_steps: int) -> None:
        clock = self._scheduler.clock
        end = clock() + quantum
        for _ in range(max_steps):
            with self._lock:
                run = self._take_changes()
                running, by_hand = self.state == "running", self._by_hand
            if run is None or not (running or by_hand > 0) or run.finished:
                break
            frame = run.step(look=not running and by_hand == 1)
            with self._lock:
                if self._run is not run:
                    return  # reset or closed meanwhile
                self.step = run.steps_done
                if not running:
                    self._by_hand = max(self._by_hand - 1, 0)
            now = clock()
            if self._speed is not None:
                # a run that fell far behind does not race to catch up
                self.due = max(self.due + 1 / self._speed, now - 0.1)
            if frame is not None or now >= end or (self._speed is not None and now < self.due):
                break
        if run is not None and not run.diverged and self.unwatched_since is None:
            self.glances.look(run, self.state != "running", self._scheduler.busy)
        with self._lock:
            if self._run is run and run is not None:
                self._settle(self.state)

    def _take_changes(self) -> Run | None:
        """The run, with the changes that waited and the length asked for."""
        run = self._run
        if run is None:
            return None
        if self._total != run.config.steps:
            run.extend(self._total)
        for name, value in self._changes.items():
            run.change(name, value)
        if self._changes:
            self._changes = {}
            self.marks = run.marks
        self._config = run.config
        return run

    def _settle(self, state: str) -> None:
        """The state after a slice: finished and diverged win over what people asked for."""
        run = self._run
        assert run is not None
        if run.diverged:
            self._set("diverged", run.reason)
        elif run.finished and state in ("running", "paused"):
            self._by_hand = 0
            self._set("finished")
        else:
            self._set(state, self.reason if state == self.state else "")
        run.recording.state = self.state

    def _set(self, state: str, reason: str = "") -> None:
        self.state, self.reason = state, reason
        self._bump()

    def _bump(self) -> None:
        self.version += 1
        self.audience.tell(self)
