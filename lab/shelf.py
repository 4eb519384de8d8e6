"""Former runs to go back to and later ones to come forward to, within a fixed number and memory."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

MOST = 6
ROOM = 30_000_000  # bytes a run; thirty runs share one small server


class Sized(Protocol):
    """What is kept."""

    @property
    def nbytes(self) -> int:
        """Its memory."""


Kept = TypeVar("Kept", bound=Sized)


class Shelf(Generic[Kept]):
    """A history of what was; one is always kept, whatever its size.

    Args:
        most: how many are kept in both directions together.
        room: their bytes.
    """

    def __init__(self, most: int = MOST, room: int = ROOM) -> None:
        self.former: list[Kept] = []
        self.later: list[Kept] = []
        self._bounds = (most, room)

    def put(self, one: Kept | None) -> None:
        """Something new begins where this was; what was later is gone. None: nothing was there yet."""
        self.later = []
        if one is not None:
            self.former = [*self.former, one]
            self._bound()

    def back(self, present: Kept | None) -> Kept | None:
        """The last former one, in exchange for what is there now; None without one."""
        if not self.former:
            return None
        *self.former, found = self.former
        self.later = [*self.later, present] if present is not None else []
        self._bound()
        return found

    def forward(self, present: Kept | None) -> Kept | None:
        """What was there before the last way back, in exchange for what is there now; None without one."""
        if not self.later:
            return None
        *self.later, found = self.later
        self.former = [*self.former, present] if present is not None else []
        self._bound()
        return found

    def clear(self) -> None:
        """Nothing is kept any more."""
        self.former, self.later = [], []

    def _bound(self) -> None:
        """The furthest goes first: the oldest former one, then the latest of the later ones."""
        most, room = self._bounds
        while (count := len(self.former) + len(self.later)) > 1 and (
            count > most or sum(one.nbytes for one in (*self.former, *self.later)) > room
        ):
            side = self.former if len(self.former) > 1 or not self.later else self.later
            del side[0]
