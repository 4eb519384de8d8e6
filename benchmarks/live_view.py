"""The live view in a real browser, beside the targets: frames a second, snapshot to pixel, processor time
a frame, click to text, training speed, first picture.

    python -m benchmarks.live_view [--case "MNIST, CNN"] [--seconds 6] [--json out.json]

Server and Chromium run on this machine and share its cores, and Chromium draws in software: a floor. Each
case has a server of its own that was just started. The bare loop is the same run with the same recording,
without page, scheduler or browser, in a process of its own. "others" says how many cores other programs
took meanwhile: figures hold on a quiet machine, processor time a frame on any. Needs Linux (/proc).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import machine_seconds, processes, seconds_of, started_with

ROOT = Path(__file__).resolve().parent.parent
CASES = {
    "blobs, MLP": {"data": "blobs", "steps": "20000"},
    "MNIST, CNN": {"data": "mnist", "steps": "20000"},
    "blobs, 5,000 points": {"data": "blobs", "steps": "20000", "blobs.points": "10000"},
}
LATE = 8.0  # seconds of training between the early and the late figures
CLICKS = 40
BARE = """
import json, sys, time
from lab.config import RunConfig
from lab.run import Run
run = Run(RunConfig.from_settings(json.loads(sys.argv[1])))
run.start(); run.step()
begun = time.perf_counter()
for _ in range(int(sys.argv[2])):
    run.step()
print(time.perf_counter() - begun)
"""
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
# figure: its unit, its target ("" for none)
FIGURES = {
    "frames/s, early": ("1/s", ">= 10"),
    "frames/s, late": ("1/s", ">= 10"),
    "snapshot to pixel, median": ("ms", "<= 100"),
    "server a frame, training included": ("ms", ""),
    "browser a frame": ("ms", ""),
    "click to text, median": ("ms", ""),
    "click to text, p95": ("ms", "<= 300"),
    "training": ("steps/s", ""),
    "training beside the bare loop": ("%", ">= 60"),
    "Home, first picture after the server is up": ("s", "<= 3"),
    "Train, first picture after the server is up": ("s", "<= 3"),
    "processor time of the server until then": ("s", ""),
    "others": ("cores", ""),
}


def main() -> None:
    """Measures the cases and prints one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one; may be repeated")
    parser.add_argument("--seconds", type=float, default=6.0, help="of each of the two measured stretches")
    parser.add_argument("--height", type=int, default=1700, help="of the window; 1700 shows every view")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    rows = {name: measure(CASES[name], given) for name in given.case or CASES}
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def table(rows: dict[str, dict[str, float]]) -> str:
    """The figures as a Markdown table, a column a case."""
    lines = ["| | target | " + " | ".join(rows) + " |", "|---" * (2 + len(rows)) + "|"]
    for figure, (unit, target) in FIGURES.items():
        cells = " | ".join(f"{row[figure]:.3g}" for row in rows.values())
        lines.append(f"| {figure} ({unit}) | {target} | {cells} |")
    return "\n".join(lines)


def measure(query: dict[str, str], given: argparse.Namespace) -> dict[str, float]:
    """One case: first picture of a fresh server, training early and late, clicks while it trains on."""
    address = "&".join(f"{key}={value}" for key, value in query.items())
    with browser(given.height) as (page, _), server() as (port, _):
        begun = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator(".preset-picture").first.wait_for()
        home = time.perf_counter() - begun
    with browser(given.height) as (page, chromium), server() as (port, process):
        watched = {"server": process, "browser": chromium}
        begun = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/train?{address}")
        panel = page.locator(".lab:not([data-frames='0'])")
        panel.wait_for()
        first = time.perf_counter() - begun
        loading = look(panel, watched)["server"]
        page.wait_for_timeout(4000)  # the server's warm-up ends
        page.get_by_role("button", name="Play", exact=True).click()
        start = look(panel, watched)
        delays = watch(page, panel, start["time"] + given.seconds)
        early = look(panel, watched)
        watch(page, panel, start["time"] + LATE)
        middle = look(panel, watched)
        delays += watch(page, panel, middle["time"] + given.seconds)
        late = look(panel, watched)
        clicks = sorted(click(page, panel) for _ in range(CLICKS))
    alone = bare_seconds(query, int(late["steps"]))
    spent = {key: late[key] - start[key] for key in late}
    ours, frames = spent["server"] + spent["browser"], max(spent["frames"], 1)
    return {
        "frames/s, early": (early["frames"] - start["frames"]) / (early["time"] - start["time"]),
        "frames/s, late": (late["frames"] - middle["frames"]) / (late["time"] - middle["time"]),
        "snapshot to pixel, median": statistics.median(delays),
        "server a frame, training included": 1000 * spent["server"] / frames,
        "browser a frame": 1000 * spent["browser"] / frames,
        "click to text, median": 1000 * statistics.median(clicks),
        "click to text, p95": 1000 * clicks[round(0.95 * len(clicks)) - 1],
        "training": spent["steps"] / spent["time"],
        "training beside the bare loop": 100 * alone / spent["time"],
        "Home, first picture after the server is up": home,
        "Train, first picture after the server is up": first,
        "processor time of the server until then": loading,
        "others": max(0.0, (spent["machine"] - ours) / spent["time"]),
    }


@contextmanager
def server() -> Iterator[tuple[int, int]]:
    """A server that has just come up: its port and process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    quiet = subprocess.DEVNULL
    started = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet, env=one_thread())
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        yield port, started.pid
    finally:
        started.terminate()
        started.wait(timeout=20)


@contextmanager
def browser(height: int) -> Iterator[tuple[Any, int]]:
    """A page of a fresh Chromium, and its process."""
    from playwright.sync_api import ViewportSize, sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
    found = os.environ.get("LOSSLAB_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise SystemExit("no Chromium or Chrome on this machine; LOSSLAB_CHROMIUM may name one")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=found,
            args=ARGUMENTS,
            viewport=ViewportSize(width=1280, height=height),
        )
        yield context.new_page(), started_with(f"--user-data-dir={profile}")
        context.close()


def bare_seconds(query: dict[str, str], steps: int) -> float:
    """How long the same run takes to that step by itself."""
    command = [sys.executable, "-c", BARE, json.dumps(query), str(steps)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env=one_thread())
    return float(done.stdout)


def one_thread() -> dict[str, str]:
    """The environment with one torch thread, as the server has."""
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def watch(page: Any, panel: Any, until: float) -> list[float]:
    """Milliseconds from snapshot to pixel, looked at ten times a second until then."""
    delays = []
    while time.perf_counter() < until:
        page.wait_for_timeout(100)
        delays.append(float(panel.get_attribute("data-delay") or "nan"))
    return delays


def look(panel: Any, watched: dict[str, int]) -> dict[str, float]:
    """Frames drawn, steps done and processor seconds so far."""
    found = {
        "frames": float(panel.get_attribute("data-frames") or 0),
        "steps": float(panel.get_attribute("data-step") or 0),
        "time": time.perf_counter(),
        "machine": machine_seconds(),
    }
    known = processes()
    return found | {name: seconds_of(number, known) for name, number in watched.items()}


def click(page: Any, panel: Any) -> float:
    """Seconds from pressing Pause or Play until the panel says so."""
    running = panel.get_attribute("data-state") == "running"
    name, state = ("Pause", "paused") if running else ("Play", "running")
    begun = time.perf_counter()
    page.get_by_role("button", name=name, exact=True).click()
    page.locator(f".lab[data-state='{state}']").wait_for()
    took = time.perf_counter() - begun
    page.wait_for_timeout(300)
    return took


def wait_for(address: str) -> None:
    """Until the server answers."""
    for _ in range(600):
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("the server did not come up")


if __name__ == "__main__":
    main()
