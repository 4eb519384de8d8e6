"""Where the work of a sweep is done: processes of this machine, or a Dask cluster. One interface."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from losslib.errors import ParameterError
from losslib.params import Integer, Param

NICENESS = Param(10, valid=Integer(0, 19), name="LOSSLAB_SWEEP_NICENESS")
IDLE_SECONDS = 60
LOOK_EVERY = 2.0
PATIENCE = "10s"


class Pool(Protocol):
    """Takes functions with their arguments, and gives futures.

    Attributes:
        slots: how many it does at once.
        shares_files: whether its workers see this machine's files.
    """

    slots: int
    shares_files: bool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A future with `add_done_callback`, `result` and `cancel`."""

    def renew(self) -> None:
        """Go on after a worker died."""

    def close(self) -> None:
        """End the workers."""


def niceness(environment: Mapping[str, str] = os.environ) -> int:
    """How far the workers stand back: 10, a tenth of a core where all are busy, or what the variable says."""
    text = environment.get(NICENESS.name)
    return int(NICENESS.default if text is None else NICENESS.parse(text, "sweep"))


def settle(back: int) -> None:
    """At a worker's start: behind the server and everything else on this machine."""
    if hasattr(os, "nice"):
        os.nice(back)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends its workers itself
    threading.Thread(target=outlive_nobody, args=(os.getppid(),), daemon=True).start()


def outlive_nobody(parent: int) -> None:
    """Ends this worker when its server is gone, however that went."""
    while os.getppid() == parent:
        time.sleep(LOOK_EVERY)
    os._exit(1)


def spare_cores() -> int:
    """Cores for a sweep: one is left for everything else."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, count - 1)


class LocalPool:
    """joblib's loky processes on this machine, with low priority; they end when idle for a minute.

    Args:
        slots: processes; by default one core less than there are, at least 1.
    """

    shares_files = True

    def __init__(self, slots: int | None = None) -> None:
        self.slots = slots or spare_cores()
        self._executor: Any = None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Starts the processes at the first call."""
        # joblib.Parallel itself would train inside the server's process when there is one slot
        from joblib.externals.loky import ProcessPoolExecutor

        if self._executor is None:
            threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
            self._executor = ProcessPoolExecutor(
                max_workers=self.slots,
                timeout=IDLE_SECONDS,
                initializer=settle,
                initargs=(niceness(),),
                env=threads,
            )
        return self._executor.submit(function, *arguments)

    def renew(self) -> None:
        """A broken executor is replaced at the next call."""
        self.close()

    def close(self) -> None:
        """End the processes at once."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, kill_workers=True)
            self._executor = None


class DaskPool:
    """A Dask cluster; its workers must have this code and its packages.

    Args:
        address: of its scheduler, such as tcp://10.0.0.5:8786.

    Raises:
        ParameterError: the package `distributed` is missing, nobody answers, or the workers lack the code.
    """

    shares_files = False

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError:
            raise ParameterError(
                "sweep: a Dask cluster needs the package distributed; pip install distributed, "
                "or leave the address out to use the cores of this machine"
            ) from None
        try:
            self._client = Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError, TimeoutError, ImportError) as error:
            raise ParameterError(
                f"sweep: no Dask scheduler answers at {address} ({_first_line(error)}); "
                "an address looks like tcp://10.0.0.5:8786"
            ) from None
        self.slots = max(1, sum(self._client.nthreads().values()))
        self._check(address)

    def _check(self, address: str) -> None:
        if not self._client.nthreads():
            self.close()
            raise ParameterError(f"sweep: the Dask cluster at {address} has no workers")
        try:
            self._client.submit(ready, pure=False).result(timeout=60)
        except Exception as error:  # whatever the worker raises comes back here
            self.close()
            raise ParameterError(
                f"sweep: the workers of {address} cannot run this code ({_first_line(error)}); "
                "start them in the project's folder with the same packages"
            ) from None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Dask itself gives the work of a dead worker to another."""
        return self._client.submit(function, *arguments, pure=False)

    def renew(self) -> None:
        """The cluster's own business."""

    def close(self) -> None:
        """Leave the cluster; it goes on without us."""
        self._client.close(timeout=5)


def ready() -> bool:
    """Whether a worker can train: it imports the engine and takes one torch thread."""
    from lab.devices import one_thread
    from lab.run import Run

    one_thread()
    return Run is not None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
