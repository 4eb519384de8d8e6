"""Questions about the last step over the WebSocket route: what is asked, who is told, what is refused."""

import json
import struct

import pytest

from lab.asked import Question
from tests.ui.test_route import Browser, closing_code, connect, host, messages, run  # noqa: F401  fixtures
from ui.live.route import QUESTION_BURST, asked
from ui.live.wire import BATCH, WHY, pack_answer


def answers(socket, wanted, count=1):
    """The next answers of a kind, everything else acknowledged and thrown away."""
    found = []
    while len(found) < count:
        for kind, _, body in messages(socket.recv(timeout=30)):
            if kind == wanted:
                found.append(json.loads(body.rstrip(b"\0")))
            elif kind == 2:
                socket.send('{"do": "ack"}')
    return found


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ('{"do": "batch"}', Question("batch")),
        ('{"do": "why", "point": 7}', Question("why", "map", 7)),
        ('{"do": "why", "of": "batch", "point": 0}', Question("why", "batch", 0)),
        ('{"do": "why", "point": -1}', None),
        ('{"do": "why", "point": 1000001}', None),
        ('{"do": "why", "point": 1.5}', None),
        ('{"do": "why", "point": true}', None),
        ('{"do": "why", "point": "7"}', None),
        ('{"do": "why", "of": "proxy", "point": 1}', None),
        ('{"do": "play"}', None),
        ('{"do": ["why"]}', None),
        ("[", None),
    ],
)
def test_a_question_is_read_with_care(text, question):
    assert asked(text) == question


def test_an_answer_is_json_in_a_message_of_its_kind():
    packet = pack_answer(65537, WHY, {"size": float("nan"), "xy": [1.5, -2]})
    version, kind, epoch, length = struct.unpack_from("<BBHI", packet)
    assert (version, kind, epoch, length) == (1, 7, 1, len(packet) - 8)
    assert length % 4 == 0
    assert json.loads(packet[8:].rstrip(b"\0")) == {"size": None, "xy": [1.5, -2]}
    assert BATCH == 6


def test_who_asks_is_told_and_nobody_else(host, run):  # noqa: F811
    with connect(host, run.token) as first, connect(host, run.token) as second:
        Browser(second).take()
        first.send('{"do": "why", "point": 3}')
        [told] = answers(first, WHY)
        assert (told["of"], told["point"], told["step"]) == ("map", 3, 0)
        assert told["sample"] == int(run.probe[3])
        assert told["rest"] < 1e-5
        second.send('{"do": "batch"}')
        [batch] = answers(second, BATCH)
        assert (batch["rows"], len(batch["xy"])) == (24, 24)
        second.send('{"do": "step"}')
        while run.step < 1:
            assert all(kind != WHY for kind, _, _ in messages(second.recv(timeout=30)))


def test_phases_go_by_command_and_are_told_in_the_state(host, run):  # noqa: F811
    with connect(host, run.token) as socket:
        browser = Browser(socket)
        browser.until(lambda: browser.states)
        for number in (1, 2, 3, 4, 5, 6):
            browser.say("phase")
            browser.until(lambda number=number: (browser.states[-1]["phase"] or {}).get("number") == number)
        assert browser.states[-1]["step"] == 1
        assert browser.states[-1]["phase"]["caption"].startswith("Adam at learning rate")
        browser.say("step")
        browser.until(lambda: browser.states[-1]["step"] == 2)
        assert browser.states[-1]["phase"] is None


def test_a_finished_run_goes_phase_by_phase_into_a_further_step(host, run):  # noqa: F811
    with connect(host, run.token) as socket:
        browser = Browser(socket)
        browser.say("play")
        browser.until(lambda: browser.states and browser.states[-1]["state"] == "finished")
        browser.say("phase")
        browser.until(lambda: (browser.states[-1]["phase"] or {}).get("step") == 51)
        assert (run.state, run.total) == ("paused", 51)


def test_questions_beyond_the_rate_are_dropped_without_a_word(host, run):  # noqa: F811
    with connect(host, run.token) as socket:
        Browser(socket).take()
        for point in range(int(QUESTION_BURST) + 20):
            socket.send(json.dumps({"do": "why", "point": point}))
        socket.send('{"do": "batch"}')  # dropped as well
        socket.send('{"do": "step"}')
        seen = []
        while run.step < 1 or not seen:
            for kind, _, body in messages(socket.recv(timeout=30)):
                if kind == WHY:
                    seen.append(json.loads(body.rstrip(b"\0"))["point"])
                assert kind != BATCH
        assert max(seen) < QUESTION_BURST + 4


@pytest.mark.parametrize("text", ['{"do": "why", "point": -1}', '{"do": "why", "of": 3}'])
def test_an_improper_question_closes_the_socket(host, run, text):  # noqa: F811
    with connect(host, run.token) as socket:
        socket.send(text)
        assert closing_code(socket) == 1008
