"""Layouts computed in a process of their own, one at a time.

t-SNE and UMAP hold Python's lock for seconds, use every core unless told otherwise, and can end the process
on data they do not expect. So they run beside the server that trains for everybody, not in it.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lab.layout_worker import HEAD, LENGTH
from lab.layouts import METHODS, Points

TIME_LIMIT = 180.0
IDLE_LIMIT = 120.0  # a process that waits holds 200 MB, 400 once it has loaded UMAP
ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class LayoutJob:
    """One layout on its way.

    Attributes:
        progress: share done, 0 to 1.
        waiting: whether another layout is computed first.
        positions: (N, 2) once there.
        reason: a sentence when there will be none.
    """

    def __init__(
        self,
        name: str,
        embeddings: Points,
        options: Mapping[str, Any],
        start: Points | None = None,
        seed: int = 0,
        command: tuple[str, ...] = (),
    ) -> None:
        stored = io.BytesIO()
        settings = json.dumps({"name": name, "options": dict(options), "seed": seed})
        begin = np.zeros(0, np.float32) if start is None else np.asarray(start, dtype=np.float32)
        points = np.asarray(embeddings, dtype=np.float32)
        np.savez(stored, embeddings=points, start=begin, settings=np.array(settings))
        self.progress, self.waiting, self.reason = 0.0, True, ""
        self.positions: NDArray[np.float32] | None = None
        self.title = METHODS[name].title
        self._request = stored.getvalue()
        self._done, self._stopped = threading.Event(), threading.Event()
        self._command = command
        threading.Thread(target=self._run, name="layout", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Waits that long at most; whether it is over."""
        return self._done.wait(seconds)

    def stop(self) -> None:
        """Nobody wants it any more: its process ends, the next layout starts another one."""
        self._stopped.set()
        PROCESS.end(self)

    def _run(self) -> None:
        try:
            with PROCESS.turn:
                self.waiting = False
                if not self._stopped.is_set():
                    self._talk()
        except (OSError, ValueError):
            self.reason = self.reason or f"{self.title} was stopped."
        finally:
            self._done.set()

    def _talk(self) -> None:
        limit = threading.Timer(TIME_LIMIT, self._too_long)
        limit.daemon = True
        limit.start()
        try:
            source = PROCESS.ask(self, self._request, self._command)
            while len(head := source.read(HEAD.size)) == HEAD.size:
                kind, length = HEAD.unpack(head)
                payload = source.read(length)
                if kind == b"p":
                    self.progress = struct.unpack("<d", payload)[0]
                    continue
                if kind == b"r":
                    self.positions = np.load(io.BytesIO(payload), allow_pickle=False)
                else:
                    self.reason = payload.decode()
                PROCESS.rest()
                return
            PROCESS.end(self)
            self.reason = self.reason or self._ended()
        finally:
            limit.cancel()

    def _too_long(self) -> None:
        self.reason = f"{self.title} took more than {TIME_LIMIT:g} s and was stopped; fewer points take less."
        PROCESS.end(self)

    def _ended(self) -> str:
        if self._stopped.is_set():
            return f"{self.title} was stopped."
        return f"{self.title} ended without a result on these embeddings; the run is not affected."


class _Process:
    """The one process, started when it is needed and ended when it has had nothing to do for a while."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._asker: LayoutJob | None = None
        self._idle: threading.Timer | None = None

    def ask(self, asker: LayoutJob, request: bytes, command: tuple[str, ...] = ()) -> IO[bytes]:
        """Sends a request; answers come from what is returned."""
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            if command:
                self._end()
            if self._child is None or self._child.poll() is not None:
                self._end()
                self._child = self._started(command)
            child, self._asker = self._child, asker
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(LENGTH.pack(len(request)) + request)
        child.stdin.flush()
        return child.stdout

    def rest(self) -> None:
        """Nothing to do until the next request; after a while the process ends."""
        with self._lock:
            self._asker = None
            self._idle = threading.Timer(IDLE_LIMIT, self.end)
            self._idle.daemon = True
            self._idle.start()

    def end(self, asker: LayoutJob | None = None) -> None:
        """Ends the process if it works for the asker; without one, if it works for nobody."""
        with self._lock:
            if self._asker is asker:
                self._end()

    def close(self) -> None:
        """Ends the process whatever it does: ours ends, too."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        child, self._child, self._asker = self._child, None, None
        if self._idle is not None:
            self._idle.cancel()
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):  # what was not read any more is lost on purpose
                if pipe is not None:
                    pipe.close()

    @staticmethod
    def _started(command: tuple[str, ...]) -> subprocess.Popen[bytes]:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(paths)}
        return subprocess.Popen(
            command or (sys.executable, "-m", "lab.layout_worker"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )


PROCESS = _Process()
atexit.register(PROCESS.close)
