"""What both WebSocket routes share: only the page's own origin, few and small messages, a log of errors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any
from urllib.parse import urlsplit

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState
from streamlit import config as streamlit_config

POLICY, TOO_BIG = 1008, 1009
# An honest client acknowledges each picture, or sends a placement for it, and presses a key now and then.
MESSAGES_PER_SECOND, MESSAGE_BURST = 120.0, 240.0
LONGEST_REASON = 120  # bytes; the protocol has room for 123
_LOG = logging.getLogger("losslab")


def base_path() -> str:
    """The path under which the server is mounted, "" or "/name"."""
    base = str(streamlit_config.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""


def same_origin(socket: WebSocket) -> bool:
    """Whether the page that opens the socket came from this very server."""
    origin, host = socket.headers.get("origin"), socket.headers.get("host")
    return bool(origin and host and urlsplit(origin).netloc.lower() == host.lower())


class Allowance:
    """A token bucket: `rate` messages a second, `burst` at once."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.left = rate, burst, burst
        self.last = time.monotonic()

    def take(self) -> bool:
        """Whether one more message is within the allowance."""
        now = time.monotonic()
        self.left = min(self.burst, self.left + (now - self.last) * self.rate)
        self.last = now
        self.left -= 1
        return self.left >= 0


class Guarded:
    """One socket, whose messages are checked and whose end is told.

    Args:
        socket: accepted.
        largest: characters a message may have.
    """

    def __init__(self, socket: WebSocket, largest: int) -> None:
        self.socket, self.largest = socket, largest
        self.allowance = Allowance(MESSAGES_PER_SECOND, MESSAGE_BURST)

    async def texts(self) -> AsyncIterator[str]:
        """What comes in, until either side ends it; no text, too much or too big closes the socket."""
        while True:
            message = await self.socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if text is None:
                await self.refuse(POLICY, "text messages only")
                return
            if len(text) > self.largest:
                await self.refuse(TOO_BIG, "message too big")
                return
            if not self.allowance.take():
                await self.refuse(POLICY, "too many messages")
                return
            yield text

    async def until_one_ends(self, *work: Coroutine[Any, Any, None]) -> None:
        """Does all at once until one of them ends; what ends with an error stands in the log."""
        tasks = [asyncio.create_task(one) for one in work]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for ended in await asyncio.gather(*tasks, return_exceptions=True):
                self._report(ended)

    def _report(self, ended: Any) -> None:
        if not isinstance(ended, Exception) or isinstance(ended, (WebSocketDisconnect, OSError)):
            return  # it left, or was asked to
        if {self.socket.client_state, self.socket.application_state} == {WebSocketState.CONNECTED}:
            _LOG.error("a socket of %s ended with an error", type(self).__name__, exc_info=ended)

    async def refuse(self, code: int, reason: str) -> None:
        """Closes the socket with a reason."""
        with contextlib.suppress(RuntimeError):
            await self.socket.close(code, reason.encode()[:LONGEST_REASON].decode(errors="ignore"))
