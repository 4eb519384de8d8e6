"""A real server with the playground's route alone, and a client that speaks as the board does."""

import json

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect


class Board:
    """The client's side of one connection."""

    def __init__(self, host, losses=(), space="plane", normalise=True):
        self.opening = connect(f"ws://{host}/play", origin=f"http://{host}")
        self.number = 0
        chosen = [[one, {}] if isinstance(one, str) else list(one) for one in losses]
        self.setup = {"do": "setup", "losses": chosen, "space": space, "normalise": normalise}

    def __enter__(self):
        self.socket = self.opening.__enter__()
        if self.setup["losses"]:
            self.say(**self.setup)
        return self

    def __exit__(self, *error):
        self.opening.__exit__(*error)

    def say(self, **message):
        self.socket.send(json.dumps(message))

    def ask(self, what, points, selected=0, **more):
        self.number += 1
        self.say(do=what, id=self.number, points=points, selected=selected, **more)

    def hear(self):
        return json.loads(self.socket.recv(timeout=30))

    def answer(self, what, points, selected=0, **more):
        """The answer to a question that is asked alone."""
        self.ask(what, points, selected, **more)
        found = self.hear()
        assert found["id"] == self.number
        return found

    def closing(self):
        """Code and reason with which the server closes, whatever it sends before."""
        with pytest.raises(ConnectionClosed) as closed:
            drain(self.socket)
        return closed.value.rcvd.code, closed.value.rcvd.reason


def drain(socket):
    while True:
        socket.recv(timeout=30)
