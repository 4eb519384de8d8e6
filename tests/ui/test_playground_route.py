"""The playground's socket: whom it lets in, that the newest wins, and what closes it."""

import json
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tests.ui.playing import Board
from tests.ui.serving import served
from ui.playground import route
from ui.playground.route import OPEN, play_routes

ROWS = [[0.9, 0.3, 0], [-0.2, 0.8, 0], [0.7, -0.6, 1]]
SETUP = {"do": "setup", "losses": [["ContrastiveLoss", {}]], "space": "plane", "normalise": True}


@pytest.fixture(scope="module")
def host():
    with served(play_routes()) as address:
        yield address


def soon(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://{host}.evil.example", "http://127.0.0.1:1", "null", None]
)
def test_other_pages_are_refused(host, origin):
    given = origin and origin.format(host=host)
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(f"ws://{host}/play", origin=given),
    ):
        pass
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("x" * 2049, 1009, "too big"),
        ("not json", 1008, "not a message"),
        ("[" * 2000, 1008, "not a message"),
        ("[]", 1008, "not a message"),
        ("{}", 1008, "setup comes first"),
        (json.dumps({"do": "place", "id": 1, "points": ROWS, "selected": 0}), 1008, "setup comes first"),
        (json.dumps({**SETUP, "losses": [["Nothing", {}]]}), 1008, "no loss is called"),
        (json.dumps({**SETUP, "losses": [["ArcFaceLoss", {}]]}), 1008, "offers"),
        (json.dumps({**SETUP, "losses": [["ContrastiveLoss", {"neg_margin": "1e999"}]]}), 1008, "neg_margin"),
        (json.dumps({**SETUP, "losses": [["ContrastiveLoss", {"__class__": "1"}]]}), 1008, "no option"),
    ],
)
def test_what_is_no_setup_closes_it_with_a_reason(host, text, code, reason):
    with Board(host) as board:
        board.socket.send(text)
        found = board.closing()
    assert found[0] == code
    assert reason in found[1]
    assert len(found[1].encode()) <= 123


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"do": "reset"}, "unknown message"),
        ({"do": ["place"]}, "unknown message"),
        ({"do": "place", "id": 1, "selected": 0, "points": ROWS[:2]}, "3 to 8 points"),
        ({"do": "place", "id": 1, "selected": 0, "points": ROWS * 3}, "3 to 8 points"),
        ({"do": "place", "id": 1, "selected": 0, "points": [*ROWS[:2], [1e9, 0, 0]]}, "point C"),
        ({"do": "place", "id": 1, "selected": 7, "points": ROWS}, "selected"),
        ({"do": "region", "id": 1, "selected": 7, "points": ROWS}, "selected"),
        ({"do": "step", "id": 1, "selected": 0, "points": ROWS, "rate": 1e9, "follow": 0}, "rate"),
        ({"do": "step", "id": 1, "selected": 0, "points": ROWS, "rate": 0.1, "follow": 4}, "follow"),
    ],
)
def test_a_wrong_message_closes_it_with_a_reason(host, message, reason):
    with Board(host, ["ContrastiveLoss"]) as board:
        board.say(**message)
        code, said = board.closing()
    assert code == 1008
    assert reason in said


def test_not_a_number_is_no_coordinate(host):
    with Board(host, ["ContrastiveLoss"]) as board:
        board.socket.send('{"do":"place","id":1,"selected":0,"points":[[NaN,0,0],[0,0,0],[1,1,1]]}')
        assert board.closing()[0] == 1008


def test_binary_messages_close_it(host):
    with Board(host) as board:
        board.socket.send(json.dumps(SETUP).encode())
        assert board.closing() == (1008, "text messages only")


def test_a_flood_closes_it(host):
    with Board(host, ["ContrastiveLoss"]) as board:
        with suppress(ConnectionClosed):
            for _ in range(1000):
                board.ask("place", ROWS)
        assert board.closing() == (1008, "too many messages")


def test_only_so_many_at_once(host, monkeypatch):
    soon(lambda: not OPEN)
    monkeypatch.setattr(route, "MAX_SOCKETS", 2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(Board(host, ["ContrastiveLoss"])).answer("place", ROWS)
        with Board(host) as late:
            assert late.closing() == (1013, "too many playgrounds are open")
    soon(lambda: not OPEN)


def test_the_newest_wins_and_the_last_is_always_answered(host):
    with Board(host, ["ContrastiveLoss", "MarginLoss", "SupConLoss", "FastAPLoss"]) as board:
        for k in range(100):
            board.ask("place", [[k / 100, 0.5, 0], *ROWS[1:]])
        numbers = []
        while 100 not in numbers:
            answer = board.hear()
            numbers.append(answer["id"])
            assert answer["points"][0][0] == (answer["id"] - 1) / 100
    assert numbers == sorted(set(numbers))
    assert len(numbers) < 100


def test_a_region_comes_for_each_loss_and_gives_way_to_a_newer_placement(host):
    with Board(host, ["ContrastiveLoss", "TripletMarginLoss"], "plane", False) as board:
        board.ask("region", ROWS, 2)
        found = [board.hear(), board.hear()]
        assert [(one["id"], one["region"]) for one in found] == [(1, 0), (1, 1)]
        assert found[1]["polygons"]
        board.ask("region", ROWS, 2)
        board.ask("place", ROWS)
        assert board.hear()["id"] == 3, "the search was given up"
        board.ask("region", ROWS, 2)
        assert board.hear()["id"] == 4


def test_a_drag_is_answered_while_another_board_searches(host):
    losses = ["ContrastiveLoss", "TripletMarginLoss", "MarginLoss", "LiftedStructureLoss"]
    with Board(host, losses, "plane", False) as slow, Board(host, ["ContrastiveLoss"]) as quick:
        quick.answer("place", ROWS)
        slow.ask("region", ROWS, 2)
        answered = [quick.answer("place", ROWS)["id"] for _ in range(10)]
        assert answered == list(range(2, 12))
        assert slow.hear()["region"] == 0


def test_another_setup_counts_from_then_on(host):
    with Board(host, ["ContrastiveLoss"], "plane", False) as board:
        assert len(board.answer("place", ROWS)["losses"]) == 1
        board.say(**{**SETUP, "losses": [["TripletLoss", {}], ["NTXentLoss", {}]], "space": "circle"})
        answer = board.answer("place", ROWS)
        assert len(answer["losses"]) == 2
        assert all(abs(x * x + y * y - 1) < 1e-12 for x, y in answer["points"])


def test_one_thread_serves_them_all(host):
    with ExitStack() as stack:
        boards = [stack.enter_context(Board(host, ["ContrastiveLoss"])) for _ in range(6)]
        for board in boards:
            board.answer("place", ROWS)
        names = [thread.name for thread in threading.enumerate()]
    assert sum(name.startswith("playground") for name in names) == 1


@pytest.mark.parametrize(("base", "paths"), [("", ["/play"]), ("lab/x", ["/play", "/lab/x/play"])])
def test_the_route_exists_under_the_base_path_too(monkeypatch, base, paths):
    monkeypatch.setattr("ui.sockets.streamlit_config.get_option", lambda name: base)
    assert [one.path for one in play_routes()] == paths
    assert route.path() == paths[-1]
