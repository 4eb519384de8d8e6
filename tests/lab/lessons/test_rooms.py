"""Rooms: counts without names, bounded, and gone with the room."""

import pytest

from lab.lessons.rooms import LENGTH, QUESTIONS, RoomError, Rooms, read_code
from losslib.errors import ParameterError


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_room_counts_predictions_and_marks_once_a_member():
    rooms = Rooms()
    room = rooms.open()
    for member, answer in (("m1", "rises"), ("m2", "falls"), ("m3", "rises"), ("m2", "rises")):
        rooms.predict(room.code, member, "beta", answer)
    rooms.join(room.code, "m4")
    rooms.finish(room.code, "m1", "beta")
    rooms.finish(room.code, "m1", "beta")
    rooms.finish(room.code, "m4", "beta")  # it did not predict
    found = rooms.counts(room.code, "beta")
    assert (found.members, found.predicted, found.finished) == (4, 3, 1)
    assert found.answers == {"rises": 3}
    assert rooms.counts(room.code, "temperature").predicted == 0


def test_a_full_room_says_so_and_lets_its_members_go_on():
    rooms = Rooms(members=2)
    code = rooms.open().code
    rooms.join(code, "m1")
    rooms.join(code, "m2")
    with pytest.raises(RoomError, match="is full: it counts 2 sessions"):
        rooms.predict(code, "m3", "beta", "rises")
    rooms.predict(code, "m1", "beta", "rises")
    assert rooms.counts(code, "beta").predicted == 1


def test_questions_and_rooms_are_bounded():
    rooms = Rooms(rooms=2)
    code = rooms.open().code
    for number in range(QUESTIONS):
        rooms.predict(code, "m1", f"question {number}", "x" * 1000)
    assert list(rooms.counts(code, "question 0").answers) == ["x" * 80]
    with pytest.raises(RoomError, match="questions already"):
        rooms.predict(code, "m1", "one more", "a")
    rooms.open()
    with pytest.raises(RoomError, match="2 rooms open"):
        rooms.open()


def test_only_the_presenter_closes_and_then_all_is_gone():
    rooms = Rooms()
    room = rooms.open()
    rooms.close(room.code, "guess")
    assert rooms.counts(room.code, "beta").members == 0
    rooms.close(room.code, room.secret)
    with pytest.raises(RoomError, match="no room"):
        rooms.counts(room.code, "beta")


def test_a_room_that_nobody_uses_goes_after_two_hours():
    clock = Clock()
    rooms = Rooms(clock=clock)
    room = rooms.open()
    clock.now = 7000.0
    rooms.join(room.code, "m1")
    clock.now = 14_000.0
    assert rooms.counts(room.code, "beta").members == 1
    clock.now = 14_000.0 + 7201.0
    with pytest.raises(RoomError, match="no room"):
        rooms.join(room.code, "m2")


def test_codes_are_read_as_people_type_them():
    code = Rooms().open().code
    assert len(code) == LENGTH
    assert read_code(f" {code.lower()} ") == code
    for wrong in ("", "ABC", "ABCDE0", "ABCDEFG", "<script>"):
        with pytest.raises(ParameterError, match="a room's code has 6"):
            read_code(wrong)
