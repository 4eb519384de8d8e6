"""A run that people watch: its state, what they ask of it, and what it tells them."""

from __future__ import annotations

import logging
import secrets

import datasets
from lab.former import Kept
from lab.glances import Glances
from lab.recording import Recording
from lab.run import Run
from lab.settings import sentence
from losslib.errors import ParameterError

ARRIVED = "Paused at step {step}, which the link shows; Play goes on."
UNWATCHED = "Paused, because nobody was watching; Play goes on."
_LOG = logging.getLogger("losslab")


class LiveRun(Kept):
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
        phase_note: what the last phase did, None between whole steps.
    """

    def __repr__(self) -> str:
        return f"LiveRun({self.token[:6]}, {self.state}, step {self.step})"

    @property
    def stands_still(self) -> bool:
        """Whether its newest frame stays the newest until somebody asks for more."""
        return self.state not in ("queued", "preparing", "running")

    # What the worker does.

    def wants_work(self, now: float) -> bool:
        """Whether there is something to do now."""
        if self.state == "preparing":
            return True
        run = self._run  # once: a reset may come in between
        if run is None:
            return False
        if self._owes_answer(now) or (self._changes and run.under_way is None):
            return True
        unseen = self.unwatched_since is None and self.glances.owed(run)
        if self.state == "paused" and (self._by_hand > 0 or self._phases > 0 or unseen):
            return True
        return self.state == "running" and (self._speed is None or now >= self.due)

    def work(self, quantum: float, max_steps: int) -> None:
        """One slice: a few steps at most, and no more than one frame. Never raises."""
        life = self._life
        try:
            if self.state == "preparing":
                self._prepare(quantum)
            else:
                self._slice(quantum, max_steps)
        except ParameterError as error:
            self._fail(life, sentence(str(error)))
        except Exception:
            number = secrets.token_hex(3)
            _LOG.exception("run %s failed (number %s)", self.token[:6], number)
            said = f"This run stopped at an error of the program (number {number}); Reset begins again."
            self._fail(life, said)

    def _fail(self, life: int, reason: str) -> None:
        """End in a state that people see, unless it was begun again or closed meanwhile."""
        with self._lock:
            self._stepping = False
            if self._life == life and self.state != "closed":
                self._set("failed", reason)

    def close(self, reason: str) -> None:
        """End for good."""
        with self._lock:
            self._run = None
            self._changes = {}
            self._let_go()
            self._set("closed", reason)
            self.audience.leave()

    def set_state(self, state: str, reason: str = "") -> None:
        """For the scheduler: queued, or preparing once there is room."""
        with self._lock:
            if (state, reason) != (self.state, self.reason):
                self._set(state, reason)

    def _prepare(self, quantum: float) -> None:
        with self._lock:
            config, shown, fork = self._config, self._shown, self._fork
            self.glances = Glances(self._clock)
        if shown is not None:
            self._show(shown)
            return
        if fork is not None:
            run = self._go_back(quantum)
            if run is None:
                return
        else:
            run = Run(config)
            run.start()
        with self._lock:
            if self._config is not config or self.state != "preparing":
                return  # reset or closed meanwhile
            self._run, self.step = run, run.steps_done
            self.recording, self.data, self.probe = run.recording, run.data, run.probe.index
            self.marks = run.marks
            asked, self._by_hand = self._by_hand, max(self._by_hand, 0)
            waits = asked or self._phases or run.steps_done
            self._settle("running" if asked < 0 else "paused" if waits else "ready")

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
                until = self._until if running else None
                if run is None or not (running or by_hand > 0) or run.finished:
                    break
                if running and self._speed is not None and clock() < self.due:
                    break  # somebody asks something meanwhile
                self._stepping = True
            arrives = until == run.steps_done + 1
            frame = run.step(look=arrives or (not running and by_hand == 1))
            with self._lock:
                self._stepping = False
                if self._run is not run:
                    return  # reset or closed meanwhile
                self.step, self.phase_note = run.steps_done, None
                self.checkpoints.look(run)
                if not running:
                    self._by_hand = max(self._by_hand - 1, 0)
                elif self._pausing is not None:
                    self._set("paused", self._pausing)
                elif arrives and self.state == "running":
                    self.pause(ARRIVED.format(step=self.step))
            now = clock()
            if self._speed is not None:
                # a run that fell far behind does not race to catch up
                self.due = max(self.due + 1 / self._speed, now - 0.1)
            if frame is not None or now >= end or (self._speed is not None and now < self.due):
                break
        if run is not None and self._phases > 0 and self.state == "paused" and not self._by_hand:
            self._one_phase(run)
        if run is not None and not run.diverged and self.unwatched_since is None:
            self.glances.look(run, self.state != "running", self._scheduler.round_cost)
        with self._lock:
            if self._run is not run or run is None:
                return
            self._settle(self.state)
        self._answer(run)

    def _take_changes(self) -> Run | None:
        """The run, with the changes that waited and the length asked for."""
        run = self._run
        if run is None:
            return None
        if self._total != run.config.steps:
            run.extend(self._total)
        if run.under_way is not None:
            return run  # it goes on as it began; changes wait for the next step
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
