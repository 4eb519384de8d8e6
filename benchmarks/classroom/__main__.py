"""A class on one server of its own, beside the targets.

    python -m benchmarks.classroom [--sessions 30] [--minutes 10] [--no-browser] [--json out.json]
    python -m benchmarks.classroom --short

Sessions without a browser speak Streamlit's protocol and that of the live view: they train, turn knobs, press
Play and Pause, go to other pages and back, close and come again, each every 3 to 7 seconds. One real Chromium
tab sits among them and clicks. Server, students and Chromium share this machine; the table says how many
cores each of them took, and other programs. Memory is that of the server and all that it starts; pages of
files that several of them map (Python, torch) count once. The exit status is 1 where a target is missed.
`--short` is for trying: eight students, one minute, no Chromium; it says nothing about a class. Needs Linux
(/proc).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.classroom.figures import missed, table, verdict
from benchmarks.classroom.students import LESSONS, lesson
from benchmarks.live_view import browser, click, server
from benchmarks.processes import machine_seconds, memory_of, processes, seconds_of

# Threads that wait for work of any visitor, as many as were ever busy at once up to a limit.
POOLS = ("AnyIO worker thread", "ThreadPoolExecutor", "asyncio", "playground")
LEAVING = 75.0  # seconds after which nothing may be left of a closed tab
SHORT = (8, 1.0)  # students, minutes


def main() -> None:
    """Measures a lesson and prints one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--sessions", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--short", action="store_true", help="eight students, one minute, no Chromium")
    parser.add_argument("--no-browser", action="store_true", help="leave the Chromium tab out")
    parser.add_argument("--json", type=Path, help="also write the figures and what went wrong to this file")
    given = parser.parse_args()
    sessions, minutes = SHORT if given.short else (given.sessions, given.minutes)
    with server() as (port, process):
        address = f"http://127.0.0.1:{port}"
        with_browser = not (given.no_browser or given.short)
        found, wrong = measure(address, process, sessions, 60 * minutes, with_browser)
    print(table(found))
    print(verdict(found))
    for sentence, count in wrong.items():
        print(f"{count} x {sentence}")
    if given.json:
        given.json.write_text(json.dumps({"figures": found, "wrong": wrong}, indent=1), encoding="utf-8")
    raise SystemExit(1 if missed(found) else 0)


def measure(
    address: str, process: int, sessions: int, seconds: float, with_browser: bool
) -> tuple[dict[str, float], dict[str, int]]:
    """One lesson: the figures, and each sentence of what went wrong with its count."""
    settle(address)
    threads = threads_of(address)
    samples: list[Sample] = []
    ended = threading.Event()
    sampler = threading.Thread(target=sample, args=(process, samples, ended), daemon=True)
    sampler.start()
    before, begun = spent(process), time.monotonic()
    options = [f"--sessions={sessions}", f"--seconds={seconds}"]
    students = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.classroom.students", address, *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, float] = {}
    chromium = 0.0
    if with_browser:
        clicks, chromium = clicked(address, begun + seconds)
        found["click to text in Chromium, p95"] = 1000 * percentile(clicks)
    heard = json.loads(students.communicate()[0])
    took, after = time.monotonic() - begun, spent(process)
    ended.set()
    sampler.join()
    wait_until(lambda: health(address)["runs"] == 0, LEAVING)
    wait_until(lambda: threads_of(address) <= threads, 10)
    used = {"server": after["server"] - before["server"], "students": heard["seconds"], "Chromium": chromium}
    others = after["machine"] - before["machine"] - sum(used.values())
    found |= told(heard["notes"]) | {
        "memory of all processes, peak": max(one.everything for one in samples),
        "memory of the server's own process, peak": max(one.server for one in samples),
        "memory, growth after the first third": growth([one.server for one in samples]),
        "runs left after all closed": health(address)["runs"],
        "threads left after all closed, pools aside": max(0, threads_of(address) - threads),
        "threads of pools after all closed": sum(health(address)["threads"].get(pool, 0) for pool in POOLS),
        **{name: seconds / took for name, seconds in used.items()},
        "other programs": max(0.0, others / took),
    }
    return found, wrongs(heard["notes"])


def settle(address: str) -> None:
    """Until the warm-up is over and every page was shown once: pools of threads and caches are there."""
    import asyncio

    from benchmarks.classroom.session import Session
    from benchmarks.classroom.students import page_name
    from ui.navigation import entries

    wait_until(lambda: health(address)["status"] == "ok", 120)

    async def tour() -> None:
        session = Session(address)
        await session.open()
        for entry in entries():
            await session.visit(page_name(entry.path))
        await session.close()

    asyncio.run(tour())
    asyncio.run(lesson(address, 2, 5.0, (0.5, 1.0)))
    time.sleep(3)  # threads of scripts end


def clicked(address: str, until: float) -> tuple[list[float], float]:
    """Seconds from each click to its text in a Chromium tab of its own; its processor seconds."""
    clicks = []
    with browser(1000) as (page, chromium):
        page.set_default_timeout(60_000)
        page.goto(f"{address}/train?data=mnist&steps=20000&seed=7")
        panel = page.locator(".lab:not([data-frames='0'])")
        panel.wait_for()
        while time.monotonic() < until - 4:
            clicks.append(click(page, panel))
            page.wait_for_timeout(3000)
        return clicks, seconds_of(chromium, processes())


def told(notes: list[dict[str, Any]]) -> dict[str, float]:
    """The figures that the students noted."""

    def answers(kind: str) -> list[float]:
        return [1000 * answer for one in notes for answer in one["answers"].get(kind, [])]

    trained = [one for one in notes if one["trained"] > 0]
    rates = [one["steps"] / one["trained"] for one in trained]
    # A step costs more with pictures: who has the same lesson is compared.
    fair = []
    for number in range(len(LESSONS)):
        same = [one["steps"] / one["trained"] for one in trained if one["lesson"] == number]
        if same:
            fair.append(min(same) / statistics.median(same))
    seen = [one["frames"] / one["trained"] for one in trained]
    return {
        "slowest student's steps a second beside the median": min(fair, default=float("nan")),
        "steps a second, median": median(rates),
        "frames a second while training, median": median(seen),
        "frames a second while training, slowest student": min(seen, default=float("nan")),
        "a control's answer at the server, median": median(answers("control")),
        "a control's answer at the server, p95": percentile(answers("control")),
        "a control of another page, p95": percentile(answers("control elsewhere")),
        "a page, p95": percentile(answers("page")),
        "a drag on the playground, p95": percentile(answers("drag")),
        "sessions": sum(one["sessions"] for one in notes),
        "controls answered": len(answers("control")),
        "errors shown": sum(len(one["errors"]) for one in notes),
        "students without an answer": sum(len(one["stuck"]) for one in notes),
    }


def wrongs(notes: list[dict[str, Any]]) -> dict[str, int]:
    """Each sentence of what went wrong, and how often."""
    found: dict[str, int] = {}
    for one in notes:
        for sentence in (*one["errors"], *one["stuck"]):
            found[sentence] = found.get(sentence, 0) + 1
    return found


class Sample(NamedTuple):
    """Memory at one moment, in MB."""

    server: float
    everything: float


def sample(process: int, samples: list[Sample], ended: threading.Event) -> None:
    """Memory of the server, and with what it started, once a second."""
    while not ended.wait(1.0):
        known = processes()
        alone = {process: known[process]} if process in known else {}
        samples.append(Sample(memory_of(process, alone) / 1e6, memory_of(process, known) / 1e6))


def growth(memories: list[float]) -> float:
    """Median memory of the last sixth above that of the sixth after the first third."""
    part = max(1, len(memories) // 6)
    return median(memories[-part:]) - median(memories[2 * part : 3 * part])


def spent(process: int) -> dict[str, float]:
    """Processor seconds so far."""
    return {"server": seconds_of(process, processes()), "machine": machine_seconds()}


def health(address: str) -> dict[str, Any]:
    """The server's report."""
    with urllib.request.urlopen(f"{address}/health", timeout=10) as answer:
        return dict(json.load(answer))


def threads_of(address: str) -> int:
    """How many threads the server has beside its pools."""
    found: dict[str, int] = health(address)["threads"]
    return sum(count for kind, count in found.items() if kind not in POOLS)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Until it holds or the time is over; the table says what is left."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)


def median(values: list[float]) -> float:
    """The median, NaN of nothing."""
    return statistics.median(values) if values else float("nan")


def percentile(values: list[float], share: float = 0.95) -> float:
    """The value that this share does not exceed, NaN of nothing."""
    return sorted(values)[max(0, round(share * len(values)) - 1)] if values else float("nan")


if __name__ == "__main__":
    main()
