"""A browser's side of one session, without the browser: Streamlit's protocol and the live view's socket."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import struct
import time
from typing import Any
from urllib.parse import urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import connect

HEADER = struct.Struct("<BBHI")
FRAME, STATE, GLANCE = 2, 3, 5
TOKEN = re.compile(rb"/live/([\w-]{22})")
DONE = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
OURS = "the mistake is ours"  # what ui.errors says of an error that is none of the visitor's
PATIENCE = 60.0  # seconds for any answer; after that the student is stuck


class StuckError(Exception):
    """An answer did not come, or the connection broke."""


class Session:
    """One tab's session: asks for reruns with the state of its controls, and sees what the page shows.

    Attributes:
        sliders, buttons: controls of the page shown, by label.
        errors: what went wrong in the program, as the page said it.
        token: of the run on the Train page, "" before.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.query: dict[str, str] = {}
        self.page = ""
        self.states: dict[str, WidgetState] = {}
        self.sliders: dict[str, Any] = {}
        self.buttons: dict[str, Any] = {}
        self.errors: list[str] = []
        self.token = ""
        self.done = asyncio.Event()
        self.lock = asyncio.Lock()
        self.repeats: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Connects; the first `visit` begins the session."""
        url = self.address.replace("http", "ws") + "/_stcore/stream"
        self.socket = await connect(url, subprotocols=["streamlit"], max_size=None, max_queue=None)  # type: ignore[list-item]
        self.reader = asyncio.create_task(self.read())

    async def close(self) -> None:
        """Leaves as a closed tab does."""
        for task in (self.reader, *self.repeats):
            task.cancel()
        await self.socket.close()

    async def visit(self, page: str, query: dict[str, str] | None = None) -> float:
        """Goes to a page, by the name in its address; seconds until it is whole."""
        self.page, self.query = page, query or {}
        self.sliders, self.buttons, self.states = {}, {}, {}
        self.stop_repeats()
        return await self.ask()

    async def turn(self, label: str, value: float) -> float:
        """Moves a slider; seconds until the page has answered."""
        slider = self.sliders[label]
        state = WidgetState(id=slider.id)
        state.double_array_value.data.append(value)
        self.states[slider.id] = state
        if slider.query_param_key:
            self.query[slider.query_param_key] = f"{value:g}"
        return await self.ask()

    async def press(self, label: str) -> float:
        """Presses a button; seconds until the page has answered."""
        pressed = WidgetState(id=self.buttons[label].id, trigger_value=True)
        return await self.ask(pressed)

    async def ask(self, pressed: WidgetState | None = None, fragment: str = "") -> float:
        """One rerun, one at a time; seconds until the script has ended."""
        async with self.lock:
            message = BackMsg()
            rerun = message.rerun_script
            rerun.page_name, rerun.query_string = self.page, urlencode(self.query)
            rerun.fragment_id, rerun.is_auto_rerun = fragment, bool(fragment)
            rerun.widget_states.widgets.extend(self.states.values())
            if pressed is not None:
                rerun.widget_states.widgets.append(pressed)
            self.done.clear()
            begun = time.perf_counter()
            await self.socket.send(message.SerializeToString())
            try:
                await asyncio.wait_for(self.done.wait(), PATIENCE)
            except TimeoutError:
                raise StuckError(f"no answer on page {self.page or 'home'!r}") from None
            return time.perf_counter() - begun

    async def read(self) -> None:
        """Takes in what the server sends."""
        with contextlib.suppress(Exception):
            async for data in self.socket:
                if isinstance(data, bytes):
                    self.take(data)

    def take(self, data: bytes) -> None:
        """One message of the server."""
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "script_finished":
            if message.script_finished in DONE:
                self.done.set()
        elif kind == "auto_rerun":
            repeat = self.repeat(message.auto_rerun.interval, message.auto_rerun.fragment_id)
            self.repeats.append(asyncio.create_task(repeat))
        elif kind == "delta" and message.delta.WhichOneof("type") == "new_element":
            self.see(message.delta.new_element)
            if found := TOKEN.search(data):
                self.token = found[1].decode()

    def see(self, element: Any) -> None:
        """Remembers what a person may use, and what went wrong."""
        kind = element.WhichOneof("type")
        if kind == "slider":
            slider = element.slider
            if slider.data_type == slider.FLOAT and slider.type == slider.SLIDER and not slider.disabled:
                self.sliders[slider.label] = slider
        elif kind == "button":
            self.buttons[element.button.label] = element.button
        elif kind == "exception" or (kind == "alert" and OURS in element.alert.body):
            self.errors.append(f"{self.page or 'home'}: {element.alert.body or element.exception.message}")

    async def repeat(self, seconds: float, fragment: str) -> None:
        """A fragment that draws itself again and again, as a browser does it."""
        while True:
            await asyncio.sleep(seconds)
            with contextlib.suppress(StuckError):
                await self.ask(fragment=fragment)

    def stop_repeats(self) -> None:
        """The page is left."""
        for task in self.repeats:
            task.cancel()
        self.repeats = []


class View:
    """The live view of one run: acknowledges frames; counts frames, steps and time while it trains."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token
        self.frames, self.steps, self.seconds = 0, 0, 0.0
        self.state, self.step = "", 0
        self.said = asyncio.Event()
        self.since: tuple[float, int] | None = None

    async def __aenter__(self) -> View:
        url = f"{self.address.replace('http', 'ws')}/live/{self.token}"
        self.socket = await connect(url, origin=self.address, max_size=None)  # type: ignore[arg-type]
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *error: object) -> None:
        self.reader.cancel()
        await self.socket.close()

    async def read(self) -> None:
        """Takes in packets and acknowledges frames."""
        with contextlib.suppress(Exception):
            async for packet in self.socket:
                if isinstance(packet, bytes) and self.take(packet):
                    await self.say("ack")

    def take(self, packet: bytes) -> bool:
        """One packet; whether it had a frame."""
        at, framed = 0, False
        while at < len(packet):
            _, kind, _, length = HEADER.unpack_from(packet, at)
            if kind in (FRAME, GLANCE):
                framed = True
            elif kind == STATE:
                self.stand(json.loads(packet[at + 8 : at + 8 + length].rstrip(b"\0")))
            at += 8 + length
        self.frames += framed and self.state == "running"
        return framed

    def stand(self, told: dict[str, Any]) -> None:
        """Where the run stands; steps count while it trains."""
        now = time.perf_counter()
        if told["state"] == "running":
            if self.since is not None and told["step"] >= self.since[1]:
                self.seconds += now - self.since[0]
                self.steps += told["step"] - self.since[1]
            self.since = now, told["step"]
        else:
            self.since = None
        self.state, self.step = told["state"], told["step"]
        self.said.set()

    async def say(self, name: str) -> None:
        """A message of the panel."""
        await self.socket.send(json.dumps({"do": name}))

    async def until(self, *states: str) -> float:
        """Seconds until the run is in one of these states."""
        begun = time.perf_counter()
        while self.state not in states:
            self.said.clear()
            try:
                await asyncio.wait_for(self.said.wait(), PATIENCE)
            except TimeoutError:
                raise StuckError(f"the run stays {self.state or 'silent'!r}, not {states}") from None
        return time.perf_counter() - begun
