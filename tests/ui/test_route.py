"""The WebSocket route: whom it lets in, what it sends, and when it closes."""

import json
import struct
from contextlib import ExitStack, suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect as open_socket

from tests.ui.serving import SMALL, served, small_run, soon
from ui.live.feed import Feed
from ui.live.route import MAX_VIEWERS, live_routes, read
from ui.server import scheduler
from ui.sockets import Allowance, base_path

HELLO, FRAME, STATE, GLANCE = 1, 2, 3, 5


@pytest.fixture
def run():
    with small_run() as made:
        yield made


@pytest.fixture(scope="module")
def host():
    """A real server with the route alone, as host and port."""
    with served(live_routes()) as address:
        yield address


def messages(packet):
    at = 0
    while at < len(packet):
        _, kind, epoch, length = struct.unpack_from("<BBHI", packet, at)
        yield kind, epoch, packet[at + 8 : at + 8 + length]
        at += 8 + length


class Browser:
    """The client's side: acknowledges frames and remembers what came."""

    def __init__(self, socket):
        self.socket, self.steps, self.states, self.epochs, self.hellos = socket, [], [], [], 0

    def take(self, acknowledge=True):
        frames, pictures = 0, 0
        for kind, epoch, body in messages(self.socket.recv(timeout=30)):
            pictures += kind in (FRAME, GLANCE)
            if kind == FRAME:
                frames += 1
                self.steps.append(struct.unpack_from("<I", body)[0])
                self.epochs.append(epoch)
            elif kind == STATE:
                self.states.append(json.loads(body.rstrip(b"\0")))
            elif kind == HELLO:
                self.hellos += 1
        if pictures and acknowledge:
            self.say("ack")
        return frames

    def say(self, name):
        self.socket.send(json.dumps({"do": name}))

    def until(self, condition):
        for _ in range(2000):
            if condition():
                return
            self.take()
        raise AssertionError(f"steps {self.steps}, states {self.states[-3:]}")


def connect(host, token, origin=""):
    return open_socket(f"ws://{host}/live/{token}", origin=origin or f"http://{host}")


def closing_code(socket):
    """The code with which the server closes, whatever it sends before."""
    with pytest.raises(ConnectionClosed) as closed:
        drain(socket)
    return closed.value.rcvd.code


def drain(socket):
    while True:
        socket.recv(timeout=30)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://{host}.evil.example",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "null",
        None,
    ],
)
def test_other_pages_are_refused(host, run, origin):
    given = origin and origin.format(host=host)
    with pytest.raises(InvalidStatus) as refused:
        open_socket(f"ws://{host}/live/{run.token}", origin=given)
    assert refused.value.response.status_code == 403


def test_an_unknown_token_is_closed_with_its_own_code(host, run):
    with connect(host, run.token + "x") as socket:
        assert closing_code(socket) == 4404


def test_tokens_cannot_be_guessed(run):
    other = scheduler().open(SMALL)
    scheduler().close(other.token)
    assert len(run.token) >= 22  # 128 bits in base64
    assert run.token != other.token


def test_frames_come_in_full_and_the_commands_work(host, run):
    with connect(host, run.token) as socket:
        browser = Browser(socket)
        browser.until(lambda: browser.steps)
        assert (browser.steps, browser.hellos) == ([0], 1)
        browser.say("step")
        browser.until(lambda: run.step == 1 and 1 in browser.steps)
        browser.until(lambda: browser.states[-1]["state"] == "paused")  # a mere pause is told late
        browser.say("play")
        browser.until(lambda: browser.states[-1]["state"] == "finished")
        browser.until(lambda: len(browser.steps) == len(run.recording.frames))
        assert sorted(browser.steps) == [frame.step for frame in run.recording.frames]
        assert len(set(browser.epochs)) == 1
        assert run.step == 50


def test_a_finished_run_trains_on_and_a_reset_one_has_a_new_epoch(host, run):
    with connect(host, run.token) as socket:
        browser = Browser(socket)
        browser.until(lambda: browser.states and browser.states[-1]["state"] == "ready")
        browser.say("play")
        browser.until(lambda: browser.states[-1]["state"] == "finished")
        browser.say("play")
        browser.until(lambda: browser.states[-1]["step"] == 100)
        run.reset()
        browser.until(lambda: browser.hellos == 2 and browser.steps[-1] == 0)
        assert len(set(browser.epochs)) == 2


def test_who_connects_again_gets_the_same_epoch(host, run):
    epochs = []
    for _ in range(2):
        with connect(host, run.token) as socket:
            browser = Browser(socket)
            while not browser.steps:
                browser.take()
            epochs += browser.epochs
    assert len(set(epochs)) == 1


def test_the_next_frame_waits_for_the_acknowledgement(host, run):
    with connect(host, run.token) as socket:
        browser = Browser(socket)
        while not browser.steps:
            browser.take(acknowledge=False)
        browser.say("play")
        while browser.states[-1]["state"] != "finished":
            browser.take(acknowledge=False)
        assert browser.steps == [0]
        browser.say("ack")
        browser.take()
        assert browser.steps[-1] == 50, "the newest frame wins"
        assert browser.steps[1] == 1, "and the gaps of the history fill up"


def test_a_watched_run_is_known_to_be_watched(host, run):
    with connect(host, run.token) as socket:
        Browser(socket).take()
        assert run.unwatched_since is None
        run.orphan()  # what a blip of the session's own connection does
        soon(lambda: run.orphaned_since is None)
    soon(lambda: run.unwatched_since is not None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x" * 257, 1009),
        ("not json", 1008),
        ("[]", 1008),
        ('{"do": "reset"}', 1008),
        ('{"do": ["ack"]}', 1008),
        ("{}", 1008),
    ],
)
def test_what_it_does_not_know_closes_it(host, run, text, code):
    with connect(host, run.token) as socket:
        socket.send(text)
        assert closing_code(socket) == code


def test_binary_messages_close_it(host, run):
    with connect(host, run.token) as socket:
        socket.send(b'{"do": "ack"}')
        assert closing_code(socket) == 1008


def test_a_flood_closes_it(host, run):
    with connect(host, run.token) as socket:
        with suppress(ConnectionClosed):
            for _ in range(1000):
                socket.send('{"do": "ack"}')
        assert closing_code(socket) == 1008


def test_only_a_few_viewers_a_run(host, run):
    with ExitStack() as stack:
        for _ in range(MAX_VIEWERS):
            Browser(stack.enter_context(connect(host, run.token))).take()
        with connect(host, run.token) as socket:
            assert closing_code(socket) == 1008


def test_a_closed_run_tells_its_viewers(host, run):
    with connect(host, run.token) as socket:
        Browser(socket).take()
        scheduler().close(run.token)
        assert closing_code(socket) == 4404


def test_an_error_in_what_is_sent_ends_the_view_and_stands_in_the_log(host, run, monkeypatch, caplog):
    def broken(*_, **__):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Feed, "packet", broken)
    with connect(host, run.token) as socket, pytest.raises(ConnectionClosed):
        drain(socket)
    soon(lambda: "secret detail" in caplog.text)
    soon(lambda: run.unwatched_since is not None)


def test_allowance_is_a_rate_with_a_burst(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("ui.sockets.time.monotonic", lambda: now[0])
    allowance = Allowance(rate=10, burst=3)
    assert [allowance.take() for _ in range(4)] == [True, True, True, False]
    now[0] = 0.3  # three more, one of which pays for the refused one
    assert [allowance.take() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("base", "paths"), [("", ["/live/{token}"]), ("lab/x", ["/live/{token}", "/lab/x/live/{token}"])]
)
def test_the_route_exists_under_the_base_path_too(monkeypatch, base, paths):
    monkeypatch.setattr("ui.sockets.streamlit_config.get_option", lambda name: base)
    assert [route.path for route in live_routes()] == paths
    assert base_path() == ("/" + base if base else "")


@pytest.mark.parametrize(
    ("text", "name"), [('{"do":"ack"}', "ack"), ("{", ""), ("3", ""), ('{"do":null}', "None"), ("", "")]
)
def test_read(text, name):
    assert read(text) == name
