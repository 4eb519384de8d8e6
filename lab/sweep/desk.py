"""Where jobs are worked through: other processes train, this one only hands out and takes in."""

from __future__ import annotations

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from lab.limits import LimitError
from lab.settings import sentence
from lab.sweep import reporter
from lab.sweep.flights import Flights
from lab.sweep.job import Job, Task
from lab.sweep.limits import SweepLimits
from lab.sweep.pools import DaskPool, LocalPool, Pool
from losslib.errors import ParameterError

MOST_TRIES = 3
LOOK_EVERY = 1.0
DIED = "Its worker process ended {0} times before the run did; it may need more memory than there is."
_LOG = logging.getLogger("losslab")


class Desk:
    """One a process: takes turns between jobs, so that a long sweep does not hold up a short one.

    A job stays when its page is left; results stay until `limits.kept` jobs are younger, and a task that
    an earlier job had is not done again.

    Args:
        limits: how many jobs.
        slots: worker processes; by default one core less than there are, at least 1.
    """

    def __init__(self, limits: SweepLimits | None = None, slots: int | None = None) -> None:
        self.limits = limits or SweepLimits()
        self._pools: dict[str, Pool] = {"": LocalPool(slots)}
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._in_flight = Flights(self._note)
        self._ended: list[Hashable] = []
        self._news = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._stopping = False

    def open(
        self,
        key: Hashable,
        tasks: Sequence[Task],
        address: str = "",
        on_result: Callable[[Task, Any], None] | None = None,
        known: Iterable[tuple[Hashable, Any]] = (),
    ) -> Job:
        """The job of that key, begun if there is none; a cancelled one goes on.

        Args:
            key: what it is; two pages that ask for the same share the job.
            tasks: the work.
            address: of a Dask cluster; "" takes this machine's cores.
            on_result: called in the desk's thread with each new result, before the job has it.
            known: results that are there already.

        Raises:
            LimitError: too many jobs wait.
            ParameterError: the cluster cannot be used.
        """
        with self._news:
            if (job := self._resumed(key, address)) is not None:
                return job
            active = [one for one in self._jobs.values() if one.state in ("waiting", "running")]
            if len(active) >= self.limits.jobs:
                raise LimitError(
                    f"this server works on {len(active)} sweeps already; try again when one has ended"
                )
        pool = None if not address or address in self._pools else DaskPool(address)  # may take seconds
        with self._news:
            if pool is not None and self._pools.setdefault(address, pool) is not pool:
                pool.close()  # another page was as fast
            if (job := self._resumed(key, address)) is not None:
                return job
            job = Job(tasks, address, on_result)
            wanted = {task.key for task in tasks}
            job.results |= {k: r for k, r in self._known() if k in wanted}
            job.results |= dict(known)
            self._jobs[key] = job
            self._forget()
            self._wake()
        return job

    def _resumed(self, key: Hashable, address: str) -> Job | None:
        """The job that there is already, going on."""
        job = self._jobs.get(key)
        if job is None or job.address != address:
            return None
        self.resume(job)
        return job

    def get(self, key: Hashable) -> Job | None:
        """The job of that key, or None."""
        with self._news:
            if key in self._jobs:
                self._jobs.move_to_end(key)
            return self._jobs.get(key)

    def show(self, key: Hashable, results: Sequence[tuple[Task, Any]]) -> Job:
        """A finished job whose results were read from a file."""
        with self._news:
            if key not in self._jobs:
                job = Job([task for task, _ in results])
                job.results = {task.key: result for task, result in results}
                self._jobs[key] = job
            return self._jobs[key]

    def cancel(self, job: Job) -> None:
        """Stop: what has ended stays, what is under way is thrown away."""
        with self._news:
            job.cancelled = True
            going = [other for other in self._jobs.values() if not other.cancelled]
            self._in_flight.stop(lambda task: any(task in other.pending for other in going))
            self._news.notify_all()
        job.bump()

    def resume(self, job: Job) -> None:
        """Go on where it was cancelled; what failed is tried again."""
        with self._news:
            if job.cancelled or job.failures:
                job.cancelled, job.reason, job.started = False, "", None
                job.failures, job.tries = {}, {}
                self._wake()
        job.bump()

    def under_way(self, job: Job) -> int:
        """Steps made in tasks of a job that have not ended."""
        with self._news:
            mine = self._in_flight.of({task.key for task in job.pending})
        return sum(flight.steps() for flight in mine)

    def ahead(self, job: Job) -> int:
        """How many other jobs share the workers with it."""
        with self._news:
            return sum(one is not job and one.state in ("running", "waiting") for one in self._jobs.values())

    def stop(self) -> None:
        """End the workers and wait for the thread; jobs stay as they are."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
            self._in_flight.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=10)
        for pool in self._pools.values():
            pool.close()
        self._in_flight.clear_away()

    # The thread that hands out.

    def _wake(self) -> None:
        self._stopping = False
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="sweeps", daemon=True)
            self._thread.start()
        self._news.notify_all()

    def _work(self) -> None:
        while True:
            with self._news:
                if self._stopping or not (self._in_flight or self._candidates()):
                    self._thread = None
                    return
                if not self._hand_out() and not self._ended:
                    self._news.wait(LOOK_EVERY)
                ended, self._ended = self._ended, []
            for key in ended:
                self._take_in(key)

    def _candidates(self) -> list[tuple[Job, Task]]:
        """The next task of every job that wants one, the job that waits longest first."""
        found = []
        for job in self._jobs.values():
            if not job.cancelled:
                task = next((t for t in job.pending if t.key not in self._in_flight), None)
                if task is not None:
                    found.append((job, task))
        flying = {id(j): sum(t.key in self._in_flight for t in j.pending) for j, _ in found}
        return sorted(found, key=lambda one: (flying[id(one[0])], one[0].done))

    def _hand_out(self) -> bool:
        """Fill the free slots; whether anything was handed out."""
        handed = False
        for job, task in self._candidates():
            pool = self._pools[job.address]
            if self._in_flight.to(job.address) < pool.slots and task.key not in self._in_flight:
                handed = True
                job.begin()
                try:
                    self._in_flight.send(task, job.address, pool)
                except Exception as error:  # the thread must go on for the other jobs
                    job.give_up(task, _ours(error))
        return handed

    def _note(self, key: Hashable) -> None:
        with self._news:
            self._ended.append(key)
            self._news.notify_all()

    def _take_in(self, key: Hashable) -> None:
        """What came of a task goes to every job that waits for it."""
        with self._news:
            task, future, address, path = self._in_flight.land(key)
            waiting = [job for job in self._jobs.values() if task in job.pending]
        reporter.tidy(path)
        try:
            result = future.result()
        except BaseException as error:
            self._missed(task, address, error, waiting)
            return
        for job in waiting:
            try:
                job.take(task, result)
            except OSError as error:
                self._stop_for(
                    job, f"{error.filename}: {error.strerror}." if error.filename else _ours(error)
                )
            except Exception as error:  # what is done with a result failed; the thread must go on
                self._stop_for(job, _ours(error))

    def _stop_for(self, job: Job, reason: str) -> None:
        job.cancelled, job.reason = True, reason
        job.bump()

    def _missed(self, task: Task, address: str, error: BaseException, waiting: list[Job]) -> None:
        """No result: cancelled, or the worker died and it is tried again, or it failed for good."""
        name = type(error).__name__
        if isinstance(error, reporter.Stopped) or "Cancelled" in name:
            return
        if "Worker" in name or "Broken" in name or "Shutdown" in name:
            if address in self._pools:  # else its last job was forgotten, and the cluster let go
                self._pools[address].renew()
            said = DIED.format(MOST_TRIES)
            for job in waiting:
                job.tries[task.key] = job.tries.get(task.key, 0) + 1
            waiting = [job for job in waiting if job.tries[task.key] >= MOST_TRIES]
        elif isinstance(error, ParameterError):
            said = sentence(str(error))
        else:
            said = _ours(error)
        for job in waiting:
            job.give_up(task, said)

    def _known(self) -> list[tuple[Hashable, Any]]:
        return [item for job in self._jobs.values() for item in job.results.items()]

    def _forget(self) -> None:
        """The oldest ended jobs go, and clusters that no job uses."""
        for key, job in list(self._jobs.items()):
            if len(self._jobs) > self.limits.kept and job.state in ("finished", "cancelled"):
                del self._jobs[key]
        used = {job.address for job in self._jobs.values()} | {""}
        for address in set(self._pools) - used:
            self._pools.pop(address).close()


def _ours(error: BaseException) -> str:
    """What people are told of an error of the program; the log has it under the number."""
    number = secrets.randbelow(900_000) + 100_000
    _LOG.error("error number %d in a sweep", number, exc_info=error)
    return f"Something went wrong, and the mistake is ours (number {number})."
