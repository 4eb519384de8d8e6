"""Sockets whose other end is gone or deaf: they end, and hold nobody up."""

import asyncio
import json
import socket as sockets
from contextlib import contextmanager

import pytest
from websockets.sync.client import connect

from tests.alone import alone
from tests.ui.serving import served, small_run, soon
from ui.live.route import VIEWERS, Viewer, live_routes
from ui.playground.route import OPEN, play_routes

SETUP = {"do": "setup", "losses": [["ContrastiveLoss", {}]], "space": "plane", "normalise": True}
PLACE = {"do": "place", "id": 1, "points": [[0.9, 0.3, 0], [-0.2, 0.8, 0], [0.7, -0.6, 1]], "selected": 0}


@pytest.fixture
def run():
    with small_run() as made:
        yield made


@pytest.fixture(scope="module")
def host():
    """Both routes on a real server that soon notices a deaf end, by pings as Streamlit's own server does."""
    routes = [*live_routes(), *play_routes()]
    with served(routes, ws_ping_interval=0.5, ws_ping_timeout=0.5) as address:
        yield int(address.rpartition(":")[2])


@contextmanager
def deaf(port, path):
    """An open WebSocket that never reads, not even the answer to its handshake."""
    end = sockets.create_connection(("127.0.0.1", port))
    end.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    host = f"127.0.0.1:{port}"
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", f"Origin: http://{host}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    lines += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
    end.sendall("\r\n".join(lines).encode())
    yield end
    end.close()


def masked(text):
    """A text message as a client frames it, with a mask of zeros."""
    data = text.encode()
    assert 125 < len(data) < 65536
    return b"\x81\xfe" + len(data).to_bytes(2, "big") + b"\0\0\0\0" + data


def test_a_viewer_that_never_reads_is_dropped(host, run):
    with deaf(host, f"/live/{run.token}"):
        soon(lambda: VIEWERS[run.token] == 1)
        run.play()
        soon(lambda: run.state == "finished")
        soon(lambda: VIEWERS[run.token] == 0)
        soon(lambda: run.unwatched_since is not None)


def test_a_board_that_only_asks_is_dropped_and_others_are_answered(host):
    with deaf(host, "/play") as end:
        soon(lambda: len(OPEN) == 1)
        end.sendall(masked(json.dumps({**SETUP, "and": "x" * 100})))
        place = masked(json.dumps({**PLACE, "and": "x" * 100}))
        for _ in range(200):
            end.sendall(place)
        address = f"127.0.0.1:{host}"
        with connect(f"ws://{address}/play", origin=f"http://{address}") as board:
            board.send(json.dumps(SETUP))
            board.send(json.dumps(PLACE))
            assert json.loads(board.recv(timeout=20))["id"] == 1
        soon(lambda: not OPEN)


def test_news_at_the_very_moment_of_leaving_keep_no_viewer(run):
    class Leaving:
        """Its tab closes just when there is something to send."""

        async def receive(self):
            await asyncio.sleep(0.01)
            viewer.wake.set()
            return {"type": "websocket.disconnect"}

        async def send_bytes(self, packet):
            pass

    async def served():
        nonlocal viewer
        viewer = Viewer(Leaving(), run)
        await asyncio.wait_for(viewer.serve(), 5)

    viewer = None
    for _ in range(5):
        alone(served())
    assert VIEWERS[run.token] == 0
    assert run.unwatched_since is not None
