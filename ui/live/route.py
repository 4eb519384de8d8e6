"""The WebSocket route `/live/{token}`: frames out, a few commands in, for the page's own origin only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from lab.asked import Question
from losslib.errors import ParameterError
from ui.live.feed import Feed
from ui.server import scheduler
from ui.sockets import POLICY, Allowance, Guarded, base_path, same_origin

if TYPE_CHECKING:
    from lab.scheduler import LiveRun

PATH = "/live/{token}"
NO_SUCH_RUN = 4404
MAX_MESSAGE = 256
MAX_VIEWERS = 4
FRAME_SECONDS = 1 / 30
STATE_SECONDS = 0.2
MORE_STEPS = 300
COMMANDS = ("play", "pause", "step", "phase")
# One question at a time is worked out; more often than this a person cannot ask.
QUESTIONS_PER_SECOND, QUESTION_BURST = 8.0, 16.0
QUESTIONS = ("batch", "why")
LARGEST_POINT = 1_000_000

VIEWERS: Counter[str] = Counter()


def path_of(token: str) -> str:
    """Where a run's frames come from, as the browser asks for it."""
    return base_path() + PATH.format(token=token)


def live_routes() -> list[WebSocketRoute]:
    """The route at the root and, if there is one, under the base path: proxies differ in what they strip."""
    return [WebSocketRoute(base + PATH, live) for base in dict.fromkeys(("", base_path()))]


def command(run: LiveRun, name: str) -> None:
    """Play, pause, step or phase. Raises ParameterError when the run may not go on."""
    if name in ("play", "step", "phase") and run.state in ("diverged", "failed"):
        raise ParameterError("this run has stopped for good; Reset begins again with the settings shown")
    if name == "play":
        under_way = run.phase_note is not None and run.step + 1 >= run.total  # by phases, after the end
        if run.state == "finished" or under_way:
            run.extend(min(run.total, MORE_STEPS))
        run.play()
    elif name == "pause":
        run.pause()
    elif name == "step":
        if run.state == "finished":
            run.extend(1)
        run.advance(1)
    elif name == "phase":
        if run.state == "finished":
            run.extend(1)
        run.phase()


async def live(socket: WebSocket) -> None:
    """One viewer of one run."""
    if not same_origin(socket):
        await socket.close(POLICY)  # before accepting: the browser sees a refused connection
        return
    token = str(socket.path_params["token"])
    await socket.accept()
    run = scheduler().get(token)
    if run is None:
        await socket.close(NO_SUCH_RUN, "no such run")
    elif VIEWERS[token] >= MAX_VIEWERS:
        await socket.close(POLICY, "too many viewers")
    else:
        await Viewer(socket, run).serve()


class Viewer(Guarded):
    """One socket: a sender that waits for acknowledgements and a receiver that checks what comes in."""

    def __init__(self, socket: WebSocket, run: LiveRun) -> None:
        super().__init__(socket, MAX_MESSAGE)
        self.run = run
        self.id = secrets.token_hex(8)
        self.feed = Feed(run, viewer=self.id)
        self.wake = asyncio.Event()
        self.acknowledged = True
        self.questions = Allowance(QUESTIONS_PER_SECOND, QUESTION_BURST)

    async def serve(self) -> None:
        """Until either side ends it."""
        loop = asyncio.get_running_loop()

        def news(*_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended with the server
                loop.call_soon_threadsafe(self.wake.set)

        unsubscribe = self.run.subscribe(news)
        self.run.attach(self.id)
        VIEWERS[self.run.token] += 1
        try:
            await self.until_one_ends(self.send(), self.receive())
        finally:
            VIEWERS[self.run.token] -= 1
            unsubscribe()
            self.run.detach(self.id)

    async def send(self) -> None:
        """A frame packet once the former was acknowledged; the state at once, but not too often."""
        self.wake.set()
        last_frame = last_state = 0.0
        while True:
            # Not wait_for: in Python 3.11 it can swallow a cancellation, and the viewer would stay for ever.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STATE_SECONDS):
                    await self.wake.wait()
            self.wake.clear()
            # Said again and again: a blip of the session's own connection makes the run an orphan.
            self.run.attach(self.id)
            if self.run.state == "closed":
                return await self.refuse(NO_SUCH_RUN, "no such run")
            if self.acknowledged:
                await asyncio.sleep(max(0.0, last_frame + FRAME_SECONDS - time.monotonic()))
            before = self.feed.frames_sent
            hold = time.monotonic() < last_state + STATE_SECONDS
            packet = self.feed.packet(self.acknowledged, hold_state=hold)
            if not packet:
                continue
            last_state = time.monotonic()
            if self.feed.frames_sent > before:
                self.acknowledged = False
                last_frame = last_state
            await self.socket.send_bytes(packet)

    async def receive(self) -> None:
        """Acknowledgements and commands; anything else, too much or too big closes the socket."""
        async for text in self.texts():
            name = read(text)
            if name == "ack":
                self.acknowledged = True
                self.wake.set()
            elif name in COMMANDS:
                with contextlib.suppress(ParameterError):  # the button says the same in a sentence
                    command(self.run, name)
            elif (step := step_asked(text)) is not None:
                if self.questions.take():
                    self.feed.ask_links(step)
                    self.wake.set()
            elif (question := asked(text)) is not None:
                if self.questions.take():
                    self.run.ask(self.id, question)
            else:
                await self.refuse(POLICY, "unknown message")
                return


def asked(text: str) -> Question | None:
    """The question in a message, None where it is none or not a proper one."""
    message = json.loads(text) if read(text) in QUESTIONS else {}
    of, point = message.get("of", "map"), message.get("point", 0)
    proper = of in ("map", "batch") and type(point) is int and 0 <= point <= LARGEST_POINT
    return Question(message["do"], of, point) if message and proper else None


def step_asked(text: str) -> int | None:
    """The step of which a message asks the links, None where it does not."""
    step = json.loads(text).get("step") if read(text) == "links" else None
    return step if type(step) is int and step >= 0 else None


def read(text: str) -> str:
    """The command in a message, or "" if it is not one."""
    try:
        message = json.loads(text)
    except ValueError:
        return ""
    return str(message.get("do", "")) if isinstance(message, dict) else ""
