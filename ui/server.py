"""What lives as long as the server: the scheduler of runs and the warm-up at its start."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from lab.scheduler import Scheduler

_LOG = logging.getLogger("losslab")
_LOCK = threading.Lock()
WARM = threading.Event()
AT_END: list[Callable[[], None]] = []  # what else ends with the server, which a signal ends without atexit
ENDING = threading.Event()  # the server ends: what is still to be warmed up is left
SCRIPT = "ScriptRunner.scriptThread"  # Streamlit's name for a thread that runs a page
SOON = 2.0  # seconds within which an answer is waited for; a page that works longer gets no way any more
LAST_PART = 10.0  # seconds that the end waits for the part under way, such as an import


def scheduler() -> Scheduler:
    """The one scheduler of this process, started at the first call."""
    with _LOCK:
        return _scheduler()


def scheduler_if_warm() -> Scheduler | None:
    """The scheduler once the warm-up is over, without waiting for it."""
    return _scheduler() if WARM.is_set() and _scheduler.cache_info().currsize else None


@cache
def _scheduler() -> Scheduler:
    from lab.scheduler import Limits, Scheduler

    made = Scheduler(Limits.from_environment(), answering=answering)
    made.start()
    return made


_SEEN: WeakKeyDictionary[threading.Thread, float] = WeakKeyDictionary()
_UNDER_WAY: list[float] = []  # when answers began that sockets wait for


@contextmanager
def answer() -> Iterator[None]:
    """What the block works out goes before training, as a page does."""
    begun = time.monotonic()
    _UNDER_WAY.append(begun)
    try:
        yield
    finally:
        _UNDER_WAY.remove(begun)


def answering() -> bool:
    """Whether a page runs, or an answer is worked out, that began a short while ago; the worker asks."""
    now = time.monotonic()
    if any(now - begun < SOON for begun in tuple(_UNDER_WAY)):
        return True
    scripts = [thread for thread in threading.enumerate() if thread.name == SCRIPT]
    return any(now - _SEEN.setdefault(thread, now) < SOON for thread in scripts)


def warm_up() -> None:
    """Imports what the first run needs, so that the first visitor does not wait for it."""
    try:
        import datasets
        from lab.settings import settings
        from ui.live.feed import squeezed_images

        settings()
        data = datasets.load("mnist")
        first_pictures_first()
        if not ENDING.is_set():
            squeezed_images(data)
        if not ENDING.is_set():
            first_step()
    except Exception:
        if not ENDING.is_set():
            _LOG.exception("warm-up failed; the first page will say why")
    WARM.set()
    # Long-lived modules and tables leave the collector's sight: each later collection is short.
    gc.collect()
    gc.freeze()


def first_pictures_first(patience: float = 4.0) -> None:
    """Waits until who came at once has a picture: it needs no optimiser, which is the rest of the warm-up."""
    deadline = time.monotonic() + patience
    waiting = ("queued", "preparing")
    while (
        time.monotonic() < deadline
        and not ENDING.is_set()
        and all(run.state in waiting for run in scheduler().runs)
    ):
        time.sleep(0.05)


def first_step(patience: float = 60.0) -> None:
    """One step of a tiny run on the worker: what torch makes at its first update is there for all."""
    from lab.config import RunConfig

    tiny = RunConfig(data="blobs", data_options={"points": 40}, batch=8, per_class=2, steps=1)
    run = scheduler().open(tiny)
    run.play()
    deadline = time.monotonic() + patience
    busy = ("queued", "preparing", "ready", "running")
    while run.state in busy and time.monotonic() < deadline and not ENDING.is_set():
        time.sleep(0.02)
    scheduler().close(run.token)


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Warms up beside the server's start, which does not wait; ends warm-up and worker with the server.

    A thread that is in the middle of an import when the interpreter ends would end in a traceback.
    """
    from lab.memory import few_arenas

    few_arenas()
    ENDING.clear()
    thread = threading.Thread(target=warm_up, name="warm-up", daemon=True)
    thread.start()
    yield {}
    ENDING.set()
    await asyncio.to_thread(thread.join, LAST_PART)
    for end in AT_END:
        await asyncio.to_thread(end)
    if _scheduler.cache_info().currsize:
        scheduler().stop()
