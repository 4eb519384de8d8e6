"""Rooms: counts without names, bounded, and gone with the room."""

import pytest

from lab.lessons.rooms import LENGTH, MEMBERS, QUESTIONS, RoomError, Rooms, read_code
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
    rooms.predict(code, "m1", "beta", "falls")
    rooms.predict(code, "m2", "beta", "falls")
    with pytest.raises(RoomError, match="is full: it counts 2 members"):
        rooms.predict(code, "m3", "beta", "rises")
    rooms.predict(code, "m1", "beta", "rises")
    assert rooms.counts(code, "beta").answers == {"falls": 1, "rises": 1}


def test_thousands_that_only_join_take_no_place_from_a_class():
    clock = Clock()
    rooms = Rooms(clock=clock)
    code = rooms.open().code
    for student in range(15):
        rooms.predict(code, f"student {student}", "beta", "rises")
    for number in range(5000):
        clock.now += 0.001
        rooms.join(code, f"script {number}")
    for student in range(30):
        rooms.predict(code, f"student {student}", "beta", "rises")
    found = rooms.counts(code, "beta")
    assert found.answers == {"rises": 30}
    assert found.members == MEMBERS


def test_a_member_that_gets_another_name_counts_once():
    rooms = Rooms()
    code = rooms.open().code
    rooms.predict(code, "session", "beta", "rises")
    rooms.finish(code, "session", "beta")
    rooms.join(code, "browser", former="session")
    rooms.join(code, "browser", former="session")
    found = rooms.counts(code, "beta")
    assert (found.members, found.predicted, found.finished) == (1, 1, 1)
    rooms.join(code, "browser", former="the session after a reload")
    rooms.predict(code, "browser", "beta", "falls")
    found = rooms.counts(code, "beta")
    assert (found.members, found.finished, found.answers) == (1, 0, {"falls": 1})  # this mark is not seen yet


def test_questions_of_strangers_take_no_place_from_those_shown():
    rooms = Rooms()
    code = rooms.open().code
    rooms.look(code, "beta")
    rooms.predict(code, "student", "beta", "rises")
    for number in range(3 * QUESTIONS):
        rooms.predict(code, "script", f"moment {number}", "x")
    assert rooms.look(code, "beta").answers == {"rises": 1}
    rooms.predict(code, "student", "temperature", "small")
    assert rooms.counts(code, "temperature").predicted == 1


def test_a_room_that_was_left_makes_way_on_a_full_server():
    clock = Clock()
    rooms = Rooms(rooms=2, clock=clock)
    left, used = rooms.open(), rooms.open()
    clock.now = 121.0
    rooms.look(used.code, "beta")
    new = rooms.open()
    assert rooms.counts(new.code).members == rooms.counts(used.code).members == 0
    with pytest.raises(RoomError, match="no room"):
        rooms.counts(left.code)
    with pytest.raises(RoomError, match="2 rooms open"):
        rooms.open()


def test_who_has_the_key_has_the_room_again():
    rooms = Rooms()
    room = rooms.open()
    assert rooms.taken(room.code, room.key) is room
    for key in ("", "guess", "\u00e9"):
        with pytest.raises(RoomError, match="somebody else's"):
            rooms.taken(room.code, key)


def test_questions_and_rooms_are_bounded():
    rooms = Rooms(rooms=2)
    code = rooms.open().code
    for number in range(QUESTIONS):
        rooms.look(code, f"question {number}")
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
    rooms.close(room.code, room.key)
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
