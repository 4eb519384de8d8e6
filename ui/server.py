"""What lives as long as the server: the scheduler of runs and the warm-up at its start."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lab.scheduler import Scheduler

_LOG = logging.getLogger("losslab")
_LOCK = threading.Lock()


def scheduler() -> Scheduler:
    """The one scheduler of this process, started at the first call."""
    with _LOCK:
        return _scheduler()


@cache
def _scheduler() -> Scheduler:
    from lab.scheduler import Scheduler

    made = Scheduler()
    made.start()
    return made


def warm_up() -> None:
    """Imports what the first run needs, so that the first visitor does not wait for it."""
    try:
        import datasets
        from losslib import catalog

        catalog.losses()
        datasets.load("mnist")
        scheduler()
    except Exception:
        _LOG.exception("warm-up failed; the first page will say why")
    # Long-lived modules and tables leave the collector's sight: each later collection is short.
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Warms up beside the server's start, which does not wait; ends the worker with the server."""
    thread = threading.Thread(target=warm_up, name="warm-up", daemon=True)
    thread.start()
    yield {}
    if _scheduler.cache_info().currsize:
        scheduler().stop()
