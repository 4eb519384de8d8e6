"""One worker thread trains every watched run in small slices in turn, so that many people share few cores."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections.abc import Callable, Iterable

from lab.config import RunConfig
from lab.devices import one_thread
from lab.limits import LimitError, Limits, estimated_bytes
from lab.live import UNWATCHED, LiveRun
from lab.memory import give_back
from lab.recording import Recording

__all__ = ["LimitError", "Limits", "LiveRun", "Scheduler"]

_LOG = logging.getLogger("losslab")
LEAST_DUTY, CROWD = 0.75, 30  # share of the time spent training when so many runs train
WAY = 1.0  # times as long as a slice worked, the worker waits at most while pages answer
NAP = 0.004  # seconds between two looks whether they still do
TIDY_SECONDS = 20.0  # between two times that memory of dropped runs goes back to the system


class Scheduler:
    """Opens runs and trains them in turn on one daemon thread.

    Args:
        limits: what is allowed.
        clock: seconds; tests bring their own.
        answering: whether somebody waits for the answer of a page, which goes before training.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
        answering: Callable[[], bool] = lambda: False,
    ) -> None:
        self.limits = limits or Limits()
        self.clock = clock
        self._answering = answering
        self._runs: dict[str, LiveRun] = {}
        self._lock = threading.RLock()
        self._news = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._freed, self._gave_back = False, clock()

    # Opening and closing.

    def start(self) -> None:
        """Start the worker, if it does not run yet."""
        with self._lock:
            if not self.working:
                self._stopping = False
                self._thread = threading.Thread(target=self._work, name="lab-scheduler", daemon=True)
                self._thread.start()
                # A daemon thread that is inside torch while the interpreter ends aborts the process.
                atexit.register(self.stop)

    @property
    def working(self) -> bool:
        """Whether the worker is alive."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End the worker and wait for it; runs stay as they are."""
        self._stopping = True
        self.wake()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        atexit.unregister(self.stop)

    def open(self, config: RunConfig, owner: str = "", recording: Recording | None = None) -> LiveRun:
        """A new run; the worker prepares it and makes frame 0.

        Args:
            config: what to train.
            owner: whose it is; limits per owner hold for owners with a name.
            recording: shown until the run is trained; meanwhile it takes no place from others.

        Raises:
            LimitError: the config, the owner or the queue exceeds a limit.
        """
        self.check(config)
        with self._lock:
            mine = [run for run in self._runs.values() if owner and run.owner == owner]
            if len(mine) >= self.limits.runs_per_owner:
                raise LimitError(
                    f"you have {len(mine)} runs already, the most one visitor may have; close one first"
                )
            if len(self._runs) >= self.limits.runs + self.limits.queue:
                self._make_room()
            if len(self._runs) >= self.limits.runs + self.limits.queue:
                raise LimitError("this server has as many runs as it can hold; try again in a minute")
            run = LiveRun(self, config, owner, recording)
            if recording is None:
                run.set_state("queued")
            self._runs[run.token] = run
            self._queue()
        self.wake()
        return run

    def place(self, token: str, held: bool = False) -> None:
        """A run is to be trained that had a recording or a smaller config: it queues behind the others.

        held: whether it has a place already, and keeps it as long as all fit.
        """
        with self._lock:
            run = self._runs.get(token)
            if run is not None and not (held and self._memory_of(self._placed()) <= self.limits.memory):
                self._runs[token] = self._runs.pop(token)
                if run.shown is None and run.state == "preparing":
                    run.set_state("queued")
            self._queue()

    def get(self, token: str) -> LiveRun | None:
        """The run of that token, or None."""
        return self._runs.get(token)

    def close(self, token: str, reason: str = "This run was closed.") -> None:
        """Drop a run; an unknown token is no error."""
        with self._lock:
            run = self._runs.pop(token, None)
            if run is not None:
                run.close(reason)
                self._freed = True
                self._queue()
        self.wake()

    @property
    def runs(self) -> tuple[LiveRun, ...]:
        """All runs, oldest first."""
        with self._lock:
            return tuple(self._runs.values())

    def check(self, config: RunConfig) -> None:
        """Raises LimitError when a config asks for more than a run may have."""
        limits = self.limits
        points = config.data_values.get("points", 0)
        for name, value, most in (
            ("steps", config.steps, limits.steps),
            ("batch", config.batch, limits.batch),
            ("points", points, limits.points),
        ):
            if value > most:
                raise LimitError(f"this server allows at most {most} for {name}, got {value}")
        if estimated_bytes(config) > limits.memory:
            raise LimitError("this run needs more memory than this server allows; choose a smaller batch")

    def wake(self) -> None:
        """There may be something to do."""
        self._news.set()

    # The worker.

    def turn(self) -> float:
        """One slice for every run that wants one, in turn; returns the seconds spent, 0 when idle."""
        now = self.clock()
        self._tidy(now)
        spent = 0.0
        for run in self.runs:
            if self._stopping:
                break
            begun, before = self.clock(), time.thread_time()
            if run.wants_work(begun):
                run.work(self.limits.quantum, self.limits.slice_steps)
                took = self.clock() - begun
                spent += took
                self._rest(took, time.thread_time() - before)
        return spent

    @property
    def busy(self) -> int:
        """How many runs train."""
        return sum(run.state == "running" for run in self.runs)

    @property
    def round_cost(self) -> float:
        """Seconds that a look at each of the runs that train takes."""
        return sum(run.glances.cost for run in self.runs if run.state == "running")

    def duty(self) -> float:
        """Share of the time that is spent training: 0.95 for one or two runs, down to 0.75 at thirty."""
        crowd = min(max(self.busy - 2, 0) / (CROWD - 2), 1.0)
        return 0.95 - (0.95 - LEAST_DUTY) * crowd

    def _work(self) -> None:
        one_thread()
        while not self._stopping:
            try:
                self._news.clear()
                if not self.turn():
                    self._news.wait(self._idle_seconds())
            except Exception:
                _LOG.exception("the scheduler's turn failed; it goes on")
                time.sleep(0.1)

    def _rest(self, took: float, worked: float) -> None:
        # Other threads answer clicks meanwhile. Left to itself, training comes between any two of their
        # instructions, and an answer takes several times as long: so it waits for them, but not for ever.
        # What a slice waited for them while it was under way, it has rested already.
        if self._thread is threading.current_thread():
            time.sleep(pause(took, worked, self.duty()))
            until = self.clock() + WAY * worked
            while self.clock() < until and not self._stopping and self._answering():
                time.sleep(NAP)

    def _idle_seconds(self) -> float:
        now = self.clock()
        waits = [run.due - now for run in self.runs if run.state == "running"]
        return min(max(min(waits, default=0.5), 0.001), 0.5)

    def _tidy(self, now: float) -> None:
        """Pause what nobody watches, drop orphans (sooner while somebody waits), let the queue move up."""
        limits, runs = self.limits, self.runs
        waited_for = any(run.state == "queued" and run.orphaned_since is None for run in runs)
        grace = min(limits.pause_after, limits.drop_after) if waited_for else limits.drop_after
        for run in runs:
            unwatched, orphaned = run.unwatched_since, run.orphaned_since
            if orphaned is not None and now - orphaned >= grace:
                self.close(run.token, "This run was dropped, because its page was closed.")
            elif unwatched is not None and now - unwatched >= limits.forget_after:
                self.close(run.token, "This run was dropped, because nobody watched it for long.")
            elif unwatched is not None and now - unwatched >= limits.pause_after:
                run.pause(UNWATCHED)
        if self._freed and now - self._gave_back >= TIDY_SECONDS:
            self._freed, self._gave_back = False, now
            give_back()

    def _make_room(self) -> None:
        """Drops the run that nobody has had a page of for the longest time, if there is one."""
        orphans = [run for run in self._runs.values() if run.orphaned_since is not None]
        if orphans:
            oldest = min(orphans, key=lambda run: run.orphaned_since or 0.0)
            self.close(oldest.token, "This run was dropped, because its page was closed and others waited.")

    def _queue(self) -> None:
        """Who has a place keeps it; the others wait, the oldest first, and know how many are ahead."""
        placed, waiting = self._placed(), 0
        held, memory = len(placed), self._memory_of(placed)
        for run in self._runs.values():
            if run.shown is not None or run.state != "queued":
                continue
            need = estimated_bytes(run.config)
            if waiting == 0 and held < self.limits.runs and (memory + need <= self.limits.memory or not held):
                held, memory = held + 1, memory + need
                run.set_state("preparing")
            else:
                waiting += 1
                ahead = "it is next" if waiting == 1 else f"{waiting - 1} are ahead of it"
                run.set_state("queued", f"{held} runs are open, this one waits for a place; {ahead}.")

    def _placed(self) -> list[LiveRun]:
        """The runs that have a place; a recording that is shown takes none."""
        return [run for run in self._runs.values() if run.shown is None and run.state != "queued"]

    @staticmethod
    def _memory_of(runs: Iterable[LiveRun]) -> int:
        return sum(estimated_bytes(run.config) for run in runs)


def pause(took: float, worked: float, duty: float) -> float:
    """Seconds to sleep after a slice, at most 0.1.

    Args:
        took: seconds from its beginning to its end.
        worked: seconds of them that the processor was at it; the rest others had.
        duty: share of the time that work may take.
    """
    return min(max(worked / duty - took, 0.0), 0.1)
