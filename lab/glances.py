"""Looks at a run between its frames, for people who watch: the map moves on although no frame is due."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lab.frame import Glance
    from lab.run import Run

EVERY = 0.07  # seconds between two looks at best
SHARE = 0.2  # of the worker's time that looks of all runs together may take
SELDOM = 0.9  # seconds between two looks at a run that crowds may not lengthen, as long as
MOST = 0.5  # of the worker's time is enough for that


class Glances:
    """When to look, and what was seen last. Frames fall on steps; glances fall on time and are not recorded.

    Args:
        clock: seconds.

    Attributes:
        newest: the last glance, or None; a frame may have been made since.
        taken: when the newest frame or glance was made, in seconds since 1970.
        cost: seconds that the last look took.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.newest: Glance | None = None
        self.taken = time.time()
        self._clock = clock
        self._seen = 0
        self._next = 0.0
        self.cost = 0.0

    def owed(self, run: Run) -> bool:
        """Whether steps were made since the last frame or glance."""
        return run.steps_done > self._seen

    def look(self, run: Run, resting: bool, round_cost: float) -> None:
        """Take a glance if the last frame or glance is long enough ago.

        Args:
            run: what to look at; it trains on as if nobody had looked.
            resting: whether it stands still now: the map then shows the very last step.
            round_cost: seconds that a look at each of the runs that train takes.
        """
        if not self.owed(run):
            return
        begun = self._clock()
        latest = run.recording.latest
        framed = latest is not None and latest.step == run.steps_done
        if not (framed or resting or begun >= self._next):
            return
        if not framed:
            self.newest = run.glance() or self.newest
            self.cost = self._clock() - begun
        self.taken = time.time()
        self._seen = run.steps_done
        self._next = begun + interval(max(round_cost, self.cost))


def interval(round_cost: float) -> float:
    """Seconds from a look or a frame to the next look, the same for every run.

    Args:
        round_cost: seconds that a look at each of the runs that train takes.
    """
    return max(EVERY, min(round_cost / SHARE, max(SELDOM, round_cost / MOST)))
