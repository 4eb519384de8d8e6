"""Rooms: live counts of a class's predictions. In memory only, bounded, and gone with the room.

Nothing is kept about anybody: a room knows how many members predicted what, by names that the members'
sessions draw at random.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from losslib.errors import ParameterError

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another
LENGTH = 6
ROOMS, MEMBERS, QUESTIONS = 20, 200, 40
UNUSED_SECONDS = 2 * 3600.0


class RoomError(ParameterError):
    """There is no such room, it is full, or there are too many."""


@dataclass
class Room:
    """One room.

    Args:
        code: what the class types or follows.
        secret: what its presenter closes it with.
        used: when something last happened, by the clock.
        members: random names of the sessions in it.
        predictions: question to member to what was predicted, a short text.
        finished: question to the members that have seen their mark.
    """

    code: str
    secret: str
    used: float
    members: set[str] = field(default_factory=set)
    predictions: dict[str, dict[str, str]] = field(default_factory=dict)
    finished: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Counts:
    """What a presenter sees of one question.

    Args:
        members: sessions in the room.
        predicted: how many predicted.
        finished: how many have seen their mark.
        answers: prediction to how many, the most frequent first.
    """

    members: int
    predicted: int
    finished: int
    answers: dict[str, int]


class Rooms:
    """All rooms of a server; every method may be called from any thread.

    Args:
        rooms: how many at once.
        members: how many sessions in one.
        clock: seconds.
    """

    def __init__(
        self, rooms: int = ROOMS, members: int = MEMBERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._members, self._clock = rooms, members, clock
        self._rooms: dict[str, Room] = {}
        self._lock = threading.Lock()

    def open(self) -> Room:
        """A new room. Raises RoomError when there are as many as the server holds."""
        with self._lock:
            self._tidy()
            if len(self._rooms) >= self._most:
                raise RoomError(f"this server has {self._most} rooms open, the most it may; close one first")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            room = Room(code, secrets.token_urlsafe(12), self._clock())
            self._rooms[code] = room
            return room

    def close(self, code: str, secret: str) -> None:
        """The presenter closes the room; what was counted is gone. Anybody else's wish changes nothing."""
        with self._lock:
            room = self._rooms.get(code)
            if room is not None and hmac.compare_digest(room.secret, secret):
                del self._rooms[code]

    def join(self, code: str, member: str) -> None:
        """A session is in the room. Raises RoomError when there is none, or it is full."""
        with self._lock:
            self._entered(code, member)

    def predict(self, code: str, member: str, question: str, answer: str) -> None:
        """What a member predicts; a later prediction takes the place of the first.

        Raises:
            RoomError: no such room, or it is full.
        """
        with self._lock:
            room = self._entered(code, member)
            if question not in room.predictions and len(room.predictions) >= QUESTIONS:
                raise RoomError(f"this room has {QUESTIONS} questions already, the most it holds")
            room.predictions.setdefault(question, {})[member] = answer[:80]

    def finish(self, code: str, member: str, question: str) -> None:
        """A member has seen the mark of its prediction. Raises RoomError as `predict` does."""
        with self._lock:
            room = self._entered(code, member)
            if member in room.predictions.get(question, {}):
                room.finished.setdefault(question, set()).add(member)

    def counts(self, code: str, question: str) -> Counts:
        """How many predicted what. Raises RoomError when there is no such room."""
        with self._lock:
            room = self._found(code)
            room.used = self._clock()
            given = room.predictions.get(question, {})
            answers = dict(Counter(given.values()).most_common())
            return Counts(len(room.members), len(given), len(room.finished.get(question, ())), answers)

    def _found(self, code: str) -> Room:
        self._tidy()
        room = self._rooms.get(code)
        if room is None:
            raise RoomError(f"there is no room {code} any more; what you predict is not counted")
        return room

    def _entered(self, code: str, member: str) -> Room:
        room = self._found(code)
        if member not in room.members and len(room.members) >= self._members:
            raise RoomError(
                f"room {code} is full: it counts {self._members} sessions. The lesson works all the same, "
                "your prediction is not counted"
            )
        room.members.add(member)
        room.used = self._clock()
        return room

    def _tidy(self) -> None:
        now = self._clock()
        for code in [c for c, room in self._rooms.items() if now - room.used > UNUSED_SECONDS]:
            del self._rooms[code]


def read_code(text: str) -> str:
    """A room's code as typed, in capitals. Raises ParameterError when it cannot be one."""
    code = text.strip().upper()
    if len(code) != LENGTH or any(letter not in LETTERS for letter in code):
        raise ParameterError(f"a room's code has {LENGTH} letters and digits, got {text[:20]!r}")
    return code
