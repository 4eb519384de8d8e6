"""A job of a `Desk`: tasks with keys, what came of them, and how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Task:
    """One piece of work for a worker process.

    Args:
        key: equal keys have equal results, which are then made once.
        function: of a module, so that a process can find it; it takes the argument and, where workers
            share this machine's files, a `Reporter`.
        argument: what it is about.
        size: updates it makes, for the remaining time.
    """

    key: Hashable
    function: Callable[..., Any] = field(compare=False)
    argument: Any = field(compare=False)
    size: int = field(compare=False)


class Job:
    """Tasks that a desk works through. Every method may be called from any thread and returns at once.

    Attributes:
        tasks: in order.
        results: key to what came.
        failures: key to a sentence, for tasks that were given up.
        cancelled: whether it was cancelled and not resumed since.
        address: of the Dask cluster, "" for this machine.
        reason: why it stopped, one sentence, or "".
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        address: str = "",
        on_result: Callable[[Task, Any], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tasks = tuple(tasks)
        self.address = address
        self.results: dict[Hashable, Any] = {}
        self.failures: dict[Hashable, str] = {}
        self.tries: dict[Hashable, int] = {}
        self.cancelled, self.reason = False, ""
        self.version = 0
        self.on_result = on_result
        self.started: float | None = None
        self.given = 0  # steps that were there before it started
        self.pace: tuple[int, float] | None = None
        self._clock = clock
        self._changed = threading.Condition()

    @property
    def pending(self) -> list[Task]:
        """Tasks without a result, in order."""
        return [t for t in self.tasks if t.key not in self.results and t.key not in self.failures]

    @property
    def state(self) -> str:
        """ "finished", "cancelled", "running" or "waiting"."""
        if not self.pending:
            return "finished"
        if self.cancelled:
            return "cancelled"
        return "waiting" if self.started is None else "running"

    @property
    def done(self) -> int:
        """Tasks that have ended."""
        return len(self.tasks) - len(self.pending)

    @property
    def total_steps(self) -> int:
        """Updates of all tasks."""
        return sum(task.size for task in self.tasks)

    def done_steps(self, under_way: int = 0) -> int:
        """Updates made, `under_way` of them in tasks that have not ended."""
        return self.total_steps - sum(task.size for task in self.pending) + under_way

    def remaining(self, under_way: int = 0) -> float | None:
        """Seconds left at the pace so far; None before anything was done."""
        done, now = self.done_steps(under_way), self._clock()
        if self.started is None or done <= self.given:
            return None
        if self.pace is None:  # the time until the first step is that of starting a worker
            self.pace = (done, now)
        made, since = done - self.pace[0], now - self.pace[1]
        return (self.total_steps - done) * since / made if made > 0 and since > 1 else None

    def begin(self) -> None:
        """Called when its first task goes to a worker."""
        if self.started is None:
            self.started = self._clock()
            self.given, self.pace = self.done_steps(), None

    def take(self, task: Task, result: Any) -> None:
        """A task has a result."""
        if task.key in self.results or task.key not in {t.key for t in self.tasks}:
            return
        if self.on_result is not None:
            self.on_result(task, result)
        self.results[task.key] = result
        self.bump()

    def give_up(self, task: Task, sentence: str) -> None:
        """A task will have no result."""
        self.failures[task.key] = sentence
        self.bump()

    def bump(self) -> None:
        """Something changed."""
        with self._changed:
            self.version += 1
            self._changed.notify_all()

    def wait(self, seconds: float, version: int = -1) -> bool:
        """Until it has ended or changed since that version, or the time is up; whether it has ended."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.state in ("finished", "cancelled") or (-1 < version != self.version), seconds
            )
        return self.state in ("finished", "cancelled")
