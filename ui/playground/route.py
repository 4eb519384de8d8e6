"""The WebSocket route `/play`: placements in, what every chosen loss makes of them out; newest wins.

Text messages of JSON. In: {"do": "setup", "losses": [[name, {option: text}], ...], "space", "normalise"},
then "place", "step" and "region" as `lab.playground.answers` describes them. Out: one answer to the newest
"place" or "step", and for a "region" one answer a loss, as they are found. Anything else closes the socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from losslib.errors import ParameterError
from ui import server
from ui.sockets import POLICY, Guarded, base_path, same_origin

if TYPE_CHECKING:
    from lab.playground.region import Region
    from lab.playground.setup import Setup

_LOG = logging.getLogger("losslab")
PATH = "/play"
BUSY, FAILED = 1013, 1011  # the standard codes for "try again later" and for a failure of the server
MAX_MESSAGE = 2048
MAX_SOCKETS = 200
SLICE = 0.008  # seconds of searching between two looks at what else there is to do

OPEN: set[Player] = set()


@cache
def worker() -> ThreadPoolExecutor:
    """The one thread that evaluates losses for all playgrounds of this process."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="playground")


@cache
def turns(loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    """Searches take turns, so that a drag waits for one slice at most."""
    return asyncio.Lock()


def path() -> str:
    """Where the browser finds the route."""
    return base_path() + PATH


def play_routes() -> list[WebSocketRoute]:
    """The route at the root and, if there is one, under the base path: proxies differ in what they strip."""
    return [WebSocketRoute(base + PATH, play) for base in dict.fromkeys(("", base_path()))]


async def play(socket: WebSocket) -> None:
    """One open playground."""
    if not same_origin(socket):
        await socket.close(POLICY)  # before accepting: the browser sees a refused connection
        return
    await socket.accept()
    if len(OPEN) >= MAX_SOCKETS:
        await socket.close(BUSY, "too many playgrounds are open")
        return
    player = Player(socket)
    OPEN.add(player)
    try:
        await player.serve()
    finally:
        OPEN.discard(player)


class Player(Guarded):
    """One socket: a receiver that checks and keeps the newest wish, and a worker that answers it."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__(socket, MAX_MESSAGE)
        self.setup: Setup | None = None
        self.wish: dict[str, Any] | None = None
        self.wanted: dict[str, Any] | None = None  # the places of a region, once nothing else is to do
        self.searches: list[tuple[int, int, int, Region]] = []
        self.newest = 0  # counts what came in: a search of an older placement is worthless
        self.wake = asyncio.Event()

    async def serve(self) -> None:
        """Until either side ends it."""
        await self.until_one_ends(self.receive(), self.answer())

    async def receive(self) -> None:
        """What comes in; what is wrong, too much or too big closes the socket."""
        async for text in self.texts():
            try:
                await self.take(read(text))
            except ParameterError as error:
                await self.refuse(POLICY, str(error))
                return
            self.wake.set()

    async def take(self, message: dict[str, Any]) -> None:
        """Keeps a wish in place of the former one. Raises ParameterError for an unknown message."""
        what = message.get("do")
        self.newest += 1
        if what == "setup":
            self.setup = await compute(checked_setup, message)
            self.wish = self.wanted = None
            self.searches = []
        elif self.setup is None:
            raise ParameterError("the setup comes first")
        elif what in ("place", "step"):
            self.wish, self.wanted, self.searches = message, None, []
        elif what == "region":
            self.wanted, self.searches = message, []
        else:
            raise ParameterError("unknown message")

    async def answer(self) -> None:
        """The newest placement first; the search of a region in slices, while there is no newer one."""
        while True:
            if self.wish is None and self.wanted is None and not self.searches:
                await self.wake.wait()
            self.wake.clear()
            try:
                await self.work()
            except ParameterError as error:
                return await self.refuse(POLICY, str(error))
            except Exception:
                _LOG.exception("the playground failed")
                return await self.refuse(FAILED, "the server failed, and its log says how")

    async def work(self) -> None:
        """One answer, or one slice of a search."""
        from lab.playground.answers import answer, region_answer, regions

        setup = self.setup
        if setup is None:
            return
        if self.wish is not None:
            wish, self.wish = self.wish, None
            with server.answer():
                found = await compute(answer, setup, wish)
            await self.send(found)
        elif self.wanted is not None:
            wanted, self.wanted = self.wanted, None
            now = self.newest
            number, selected, found = await compute(regions, setup, wanted)
            if now == self.newest:
                self.searches = [(number, place, selected, one) for place, one in enumerate(found)]
        elif self.searches:
            now = self.newest
            number, place, selected, region = self.searches[0]
            async with turns(asyncio.get_running_loop()):
                done = await compute(region.work, SLICE)
            if done and now == self.newest:
                self.searches.pop(0)
                await self.send(region_answer(number, place, selected, region))

    async def send(self, found: dict[str, Any]) -> None:
        """One answer as text."""
        with contextlib.suppress(RuntimeError):  # it may have closed meanwhile
            await self.socket.send_text(json.dumps(found, separators=(",", ":"), allow_nan=False))


async def compute(function: Any, *arguments: Any) -> Any:
    """The value of a function on the worker's thread."""
    return await asyncio.get_running_loop().run_in_executor(worker(), function, *arguments)


def checked_setup(message: dict[str, Any]) -> Setup:
    """The setup, once each of its losses could be built. Raises ParameterError."""
    from lab.playground.setup import built, read_setup

    setup = read_setup(message)
    for chosen in setup.losses:
        built(chosen, setup.normalise)
    return setup


def read(text: str) -> dict[str, Any]:
    """The message in a text. Raises ParameterError if there is none."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise ParameterError("not a message")
    return message
