"""Rooms: live counts of a class's predictions. In memory only, bounded, and gone with the room.

Nothing is kept about anybody: a room knows how many members predicted what, by names that the members'
browsers draw at random, another one for each room. A member counts once, whatever comes again from there.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from losslib.errors import ParameterError

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # none that is taken for another
LENGTH = 6
ROOMS, MEMBERS, QUESTIONS = 20, 200, 40
UNUSED_SECONDS = 2 * 3600.0
LEFT_SECONDS = 120.0  # a presenter's tab looks every two seconds: after this a room may make way for another


class RoomError(ParameterError):
    """There is no such room, it is full, or there are too many."""


@dataclass
class Room:
    """One room.

    Args:
        code: what the class types or follows.
        key: what its presenter is known by, who alone closes it.
        used: when something last happened, by the clock.
        members: random names of who is in it, with when they last did something.
        predictions: question to member to what was predicted, a short text.
        finished: question to the members that have seen the mark of their present prediction.
        shown: questions that the presenter has looked at.
    """

    code: str
    key: str
    used: float
    members: dict[str, float] = field(default_factory=dict)
    predictions: dict[str, dict[str, str]] = field(default_factory=dict)
    finished: dict[str, set[str]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)

    def answered(self, member: str) -> bool:
        """Whether a member has predicted anything."""
        return any(member in given for given in self.predictions.values())


@dataclass(frozen=True)
class Counts:
    """What a presenter sees of one question.

    Args:
        members: how many are in the room.
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
        members: how many in one room.
        clock: seconds.
    """

    def __init__(
        self, rooms: int = ROOMS, members: int = MEMBERS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._members, self._clock = rooms, members, clock
        self._rooms: dict[str, Room] = {}
        self._lock = threading.Lock()

    def open(self) -> Room:
        """A new room. Raises RoomError when there are as many as the server holds, all of them in use."""
        with self._lock:
            self._tidy()
            if len(self._rooms) >= self._most:
                self._forget_one_left()
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            room = Room(code, secrets.token_urlsafe(12), self._clock())
            self._rooms[code] = room
            return room

    def taken(self, code: str, key: str) -> Room:
        """The room, for who has its key. Raises RoomError without it."""
        with self._lock:
            room = self._found(code)
            if not hmac.compare_digest(room.key.encode(), key.encode()):
                raise RoomError(f"room {code} is somebody else's")
            return room

    def close(self, code: str, key: str) -> None:
        """The presenter closes the room; what was counted is gone. Anybody else's wish changes nothing."""
        with suppress(RoomError):
            self.taken(code, key)
            with self._lock:
                self._rooms.pop(code, None)

    def join(self, code: str, member: str, former: str = "") -> None:
        """A member is in the room. Raises RoomError when there is none, or it is full.

        Args:
            code: of the room.
            member: its name.
            former: another name that it had; what was counted under that is now its own.
        """
        with self._lock:
            room = self._found(code)
            if former and former != member and former in room.members:
                room.members.setdefault(member, room.members.pop(former))
                for given in room.predictions.values():
                    if former in given:
                        given[member] = given.pop(former)
                for seen in room.finished.values():
                    if former in seen:
                        seen.remove(former)
                        seen.add(member)
            self._entered(code, member)

    def predict(self, code: str, member: str, question: str, answer: str) -> None:
        """What a member predicts; a later prediction takes the place of the first.

        Raises:
            RoomError: no such room, or it is full.
        """
        with self._lock:
            room = self._entered(code, member)
            if question not in room.predictions and len(room.predictions) >= QUESTIONS:
                self._forget_a_question(room)
            room.predictions.setdefault(question, {})[member] = answer[:80]
            room.finished.get(question, set()).discard(member)

    def finish(self, code: str, member: str, question: str) -> None:
        """A member has seen the mark of its prediction. Raises RoomError as `predict` does."""
        with self._lock:
            room = self._entered(code, member)
            if member in room.predictions.get(question, {}):
                room.finished.setdefault(question, set()).add(member)

    def look(self, code: str, question: str) -> Counts:
        """The counts, for the presenter: the room is in use, and so is the question. Raises RoomError."""
        found = self.counts(code, question)
        with self._lock:
            room = self._found(code)
            room.used = self._clock()
            if len(room.shown) < QUESTIONS:
                room.shown.add(question)
        return found

    def counts(self, code: str, question: str = "") -> Counts:
        """How many predicted what. Raises RoomError when there is no such room."""
        with self._lock:
            room = self._found(code)
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
            # Who came and never predicted makes way, the one longest silent first.
            silent = [name for name in room.members if not room.answered(name)]
            if not silent:
                raise RoomError(
                    f"room {code} is full: it counts {self._members} members. The lesson works all the same, "
                    "your prediction is not counted"
                )
            del room.members[min(silent, key=room.members.__getitem__)]
        room.members[member] = room.used = self._clock()
        return room

    def _forget_one_left(self) -> None:
        now = self._clock()
        left = [room for room in self._rooms.values() if now - room.used > LEFT_SECONDS]
        if not left:
            raise RoomError(f"this server has {self._most} rooms open, the most it may; close one first")
        del self._rooms[min(left, key=lambda room: room.used).code]

    def _forget_a_question(self, room: Room) -> None:
        """One that the presenter never showed makes way, the least answered first: links can ask anything."""
        strange = [question for question in room.predictions if question not in room.shown]
        if not strange:
            raise RoomError(f"this room has {QUESTIONS} questions already, the most it holds")
        least = min(strange, key=lambda question: len(room.predictions[question]))
        del room.predictions[least]
        room.finished.pop(least, None)

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
