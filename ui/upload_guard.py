"""Keeps uploads within what the server can hold: Streamlit limits the size of a file, not their number."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse

from lab.uploads.limits import MIB, UploadLimits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

UPLOAD = re.compile(r"/_stcore/upload_file/(?P<session>[^/]+)/(?P<file>[^/]+)$")
FULL, TOO_MANY = 507, 429  # insufficient storage, too many requests
PATIENCE = 300.0  # seconds an upload may take, so that a slow one does not hold its place for ever


class Held:
    """What Streamlit keeps of uploads: bytes of all sessions, and the files of one."""

    def bytes(self) -> int:
        """Of all sessions."""
        return sum(len(file.data) for files in self._storage().values() for file in files.values())

    def files(self, session: str) -> set[str]:
        """Names of a session's files."""
        return set(self._storage().get(session, {}))

    def _storage(self) -> dict[str, dict[str, Any]]:
        from streamlit.runtime import get_instance

        manager = get_instance().uploaded_file_mgr
        return {session: dict(files) for session, files in dict(manager.file_storage).items()}  # type: ignore[attr-defined]


class UploadGuard:
    """Middleware: refuses an upload before its body is read, if there is no room for it.

    Args:
        app: what it stands before.
        limits: of uploads; by default those of the environment.
        held: what is kept already.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: UploadLimits | None = None,
        held: Held | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.app, self.limits, self.held = app, limits or UploadLimits.from_environment(), held or Held()
        self.patience = patience
        self.coming: Counter[str] = Counter()  # bytes under way by session
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on what is no upload."""
        found = UPLOAD.search(scope.get("path", "")) if scope.get("method") == "PUT" else None
        if found is None:
            await self.app(scope, receive, send)
            return
        size = self.announced(scope)
        refused = self.refusal(found["session"], found["file"], size)
        if refused:
            status, sentence = refused
            await PlainTextResponse(sentence, status, {"Connection": "close"})(scope, receive, send)
            return
        self.under_way += 1
        self.coming[found["session"]] += size
        try:
            await self.app(scope, self.in_time(receive), send)
        finally:
            self.under_way -= 1
            self.coming[found["session"]] -= size

    def announced(self, scope: Scope) -> int:
        """Bytes that the request says it has; the most one file may have if it does not say."""
        told = dict(scope["headers"]).get(b"content-length", b"")
        return int(told) if told.isdigit() else self.limits.bytes

    def refusal(self, session: str, file: str, size: int) -> tuple[int, str] | None:
        """Status and sentence if there is no room, else None."""
        limits = self.limits
        if self.under_way >= limits.at_once:
            return TOO_MANY, "too many files are being uploaded to this server; try again in a minute"
        if len(self.held.files(session) | {file}) > limits.files:
            return TOO_MANY, f"one visitor may have {limits.files} files here; remove one first"
        if self.held.bytes() + self.coming.total() + size > limits.held * MIB:
            return FULL, "this server holds as many files as it can; try again in a few minutes"
        return None

    def in_time(self, receive: Receive) -> Receive:
        """The body, as long as it is not too slow; then it counts as broken off."""
        deadline = time.monotonic() + self.patience

        async def next_part() -> Message:
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    return await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}

        return next_part
