"""Tasks that are with worker processes: sent, counted, told to stop, and landed."""

from __future__ import annotations

import logging
import secrets
import shutil
import tempfile
from collections.abc import Callable, Container, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lab.sweep import reporter
from lab.sweep.carried import carrying
from lab.sweep.job import Task
from lab.sweep.pools import Pool

_LOG = logging.getLogger("losslab")


class Flight(NamedTuple):
    """One task with a worker.

    Args:
        task: what was sent.
        future: of its result.
        address: of the cluster it went to; "" is this machine.
        path: the file in which the worker says how far it is.
    """

    task: Task
    future: Any
    address: str
    path: Path

    def steps(self) -> int:
        """Steps that its worker has told of; reads a file, so no lock should be held."""
        return min(reporter.steps_told(self.path), self.task.size)


class Flights:
    """The tasks under way, by key. Whoever owns it calls it under a lock of their own.

    Args:
        landed: called with a task's key from any thread when its future is done.
    """

    def __init__(self, landed: Callable[[Hashable], None]) -> None:
        self._landed = landed
        self._by_key: dict[Hashable, Flight] = {}
        self._folder: Path | None = None

    def __contains__(self, key: Hashable) -> bool:
        return key in self._by_key

    def __len__(self) -> int:
        return len(self._by_key)

    def to(self, address: str) -> int:
        """How many are with the workers of an address."""
        return sum(flight.address == address for flight in self._by_key.values())

    def send(self, task: Task, address: str, pool: Pool) -> None:
        """Hand a task to a pool. Raises what the pool raises a second time, just renewed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="losslab-sweep-"))
        path = self._folder / secrets.token_hex(8)
        more = (reporter.Reporter(str(path)),) if pool.shares_files else ()
        future = _sent(pool, task, more)
        self._by_key[task.key] = Flight(task, future, address, path)
        future.add_done_callback(lambda _: self._landed(task.key))

    def land(self, key: Hashable) -> Flight:
        """The task whose future is done; it is under way no longer."""
        return self._by_key.pop(key)

    def of(self, keys: Container[Hashable]) -> list[Flight]:
        """The tasks of these keys that are under way."""
        return [flight for key, flight in self._by_key.items() if key in keys]

    def stop(self, wanted: Callable[[Task], bool]) -> None:
        """Tell the workers to leave the tasks that nobody wants."""
        for flight in list(self._by_key.values()):
            if not wanted(flight.task):
                flight.future.cancel()
                with suppress(OSError):
                    reporter.stop(flight.path)

    def cancel(self) -> None:
        """Take back what no worker has begun."""
        for flight in list(self._by_key.values()):
            flight.future.cancel()

    def clear_away(self) -> None:
        """Remove the files in which workers say how far they are."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _sent(pool: Pool, task: Task, more: tuple[reporter.Reporter, ...]) -> Any:
    """The future of a task; a pool that broke in this moment is renewed once."""
    function = carrying(task.function, task.argument)
    try:
        return pool.submit(function, task.argument, *more)
    except Exception as error:
        _LOG.warning("a sweep's pool refused work (%s); it is renewed", type(error).__name__)
        pool.renew()
        return pool.submit(function, task.argument, *more)
