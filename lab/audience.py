"""Who watches a run, since when nobody does, and who wants to be told about it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Callback = Callable[[Any], None]
_LOG = logging.getLogger("losslab")


class Audience:
    """Viewers and subscribers of one run. It keeps no time of its own and takes no lock: its run does.

    Attributes:
        unwatched_since: when the last viewer left, or the last sign of life since; None while watched.
        orphaned_since: since when there is neither a session that owns the run nor a viewer, or None.
    """

    def __init__(self, now: float) -> None:
        self.unwatched_since: float | None = now
        self.orphaned_since: float | None = None
        self._owned = True
        self._viewers: set[str] = set()
        self._subscribers: list[Callback] = []

    def attach(self, viewer: str) -> None:
        """Somebody watches; the run is no orphan as long as that lasts."""
        self._viewers.add(viewer)
        self.unwatched_since = self.orphaned_since = None

    def detach(self, viewer: str, now: float) -> None:
        """Somebody watches no more."""
        self._viewers.discard(viewer)
        if not self._viewers and self.unwatched_since is None:
            self.unwatched_since = now
            # After a blip of the network the view comes back by itself, its session perhaps never.
            self.orphaned_since = None if self._owned else now

    def orphan(self, now: float) -> None:
        """Nobody watches, and nobody will unless the run is adopted."""
        self._viewers.clear()
        self._owned = False
        self.orphaned_since = now
        self.unwatched_since = now if self.unwatched_since is None else self.unwatched_since

    def adopt(self) -> None:
        """A session owns the run again."""
        self._owned = True
        self.orphaned_since = None

    def sign_of_life(self, now: float) -> None:
        """Who asks for something is there, even where no viewer could be counted."""
        if self.unwatched_since is not None:
            self.unwatched_since = now

    def subscribe(self, callback: Callback) -> None:
        """Tell this one too."""
        self._subscribers = [*self._subscribers, callback]

    def unsubscribe(self, callback: Callback) -> None:
        """Tell this one no more; an unknown one is no error."""
        self._subscribers = [known for known in self._subscribers if known is not callback]

    def tell(self, news: Any) -> None:
        """Call every subscriber; one that fails is called no more, and the log says why."""
        for callback in self._subscribers:
            try:
                callback(news)
            except Exception:
                _LOG.exception("a subscriber of %r failed and is called no more", news)
                self.unsubscribe(callback)

    def leave(self) -> None:
        """Forget all subscribers."""
        self._subscribers = []


class Watched:
    """What people may watch, from any thread: it has an audience, a lock and a clock in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.audience = Audience(clock())
        self._clock = clock
        self._lock = threading.RLock()

    def held(self) -> AbstractContextManager[bool]:
        """Within it nothing changes: to read, at once, several attributes that belong together."""
        return self._lock

    def attach(self, viewer: str) -> None:
        """Somebody watches; the run is no orphan."""
        with self._lock:
            self.audience.attach(viewer)

    def detach(self, viewer: str) -> None:
        """Somebody watches no more."""
        with self._lock:
            self.audience.detach(viewer, self._clock())

    def orphan(self) -> None:
        """The session that owned it is gone: nobody watches, and nobody will unless it is adopted."""
        with self._lock:
            self.audience.orphan(self._clock())

    def adopt(self) -> None:
        """A session owns it again."""
        with self._lock:
            self.audience.adopt()

    def sign_of_life(self) -> None:
        """Who asks for something is there, even where no viewer could be counted."""
        with self._lock:
            self.audience.sign_of_life(self._clock())

    @property
    def unwatched_since(self) -> float | None:
        """Since when nobody watches, by the clock; None while somebody does."""
        return self.audience.unwatched_since

    @property
    def orphaned_since(self) -> float | None:
        """Since when no session owns it; None while one does."""
        return self.audience.orphaned_since

    def subscribe(self, callback: Callback) -> Callable[[], None]:
        """Call back with this run on each frame and change; it must not block. Returns the way out."""
        with self._lock:
            self.audience.subscribe(callback)

        def unsubscribe() -> None:
            with self._lock:
                self.audience.unsubscribe(callback)

        return unsubscribe
