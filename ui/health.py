"""`/health` for whoever runs the server: how many runs there are and what they do. Counts only, no names."""

from __future__ import annotations

import re
import threading
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ui.live.route import VIEWERS
from ui.server import scheduler_if_warm
from ui.sockets import base_path

PATH = "/health"


def health_routes() -> list[Route]:
    """The address at the root and, if there is one, under the base path."""
    return [Route(base + PATH, answer) for base in dict.fromkeys(("", base_path()))]


async def answer(request: Request) -> JSONResponse:
    """The report as JSON, never from a cache."""
    return JSONResponse(report(), headers={"Cache-Control": "no-store"})


def report() -> dict[str, Any]:
    """Whether the worker is up, runs in each state, open views, threads of each kind, and the limits.

    {"status": "ok", "runs": 3, "states": {"paused": 1, "running": 2}, "viewers": 2, "threads": {...},
    "limits": {...}}; status is "starting" until the warm-up is over, "stopped" if the worker ended.
    """
    found = scheduler_if_warm()
    if found is None:
        return {"status": "starting"}
    states = Counter(run.state for run in found.runs)
    return {
        "status": "ok" if found.working else "stopped",
        "runs": states.total(),
        "states": dict(sorted(states.items())),
        "viewers": VIEWERS.total(),
        "threads": dict(sorted(Counter(map(kind_of, threading.enumerate())).items())),
        "limits": vars(found.limits),
    }


def kind_of(thread: threading.Thread) -> str:
    """A thread's name without its number."""
    return re.sub(r"[-_ ]\d.*", "", thread.name)
