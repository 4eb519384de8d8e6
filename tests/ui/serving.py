"""A real server with some routes alone, and a small run to watch."""

import socket as sockets
import threading
import time
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from lab.config import RunConfig
from ui.server import scheduler

SMALL = RunConfig(data="blobs", data_options={"points": 120}, batch=24, per_class=4, steps=50)


@contextmanager
def served(routes, **more):
    """The server's host and port; `more` is for uvicorn."""
    with sockets.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = {"log_level": "error", "lifespan": "off", "ws": "websockets-sansio", **more}
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=port, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=10)
    assert not thread.is_alive(), "no task is left that the end of the server waits for"


@contextmanager
def small_run():
    """A run that is closed at the end."""
    made = scheduler().open(SMALL)
    yield made
    scheduler().close(made.token)


def soon(condition, seconds=20):
    """Waits for it."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
