"""How a worker process says how far it is, and hears that it is to stop: two small files."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

EVERY = 0.2


class Stopped(Exception):  # noqa: N818 (nothing went wrong)
    """The work was cancelled."""


class Reporter:
    """The worker's end.

    Args:
        path: a file in a folder that both processes see.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._next = 0.0

    def tell(self, done: int) -> None:
        """Write the number of steps done, at most five times a second. Raises Stopped when cancelled."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if self._path.with_suffix(".stop").exists():
            raise Stopped
        with suppress(OSError):  # a disk that is full is no reason to stop training
            self._path.write_text(str(done), encoding="ascii")


def steps_told(path: Path) -> int:
    """What the worker has written so far."""
    try:
        return int(path.read_text(encoding="ascii") or 0)
    except (OSError, ValueError):
        return 0


def stop(path: Path) -> None:
    """Ask the worker to stop."""
    path.with_suffix(".stop").touch()


def tidy(path: Path) -> None:
    """Remove both files."""
    for file in (path, path.with_suffix(".stop")):
        file.unlink(missing_ok=True)
