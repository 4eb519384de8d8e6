"""The live view in a real browser: frames a second, snapshot to pixel, processor time a frame, click to text.

    python -m benchmarks.live_view [--seconds 6] [--json out.json]

Starts the server and Chromium on this machine, so both share its cores and Chromium draws in software: a
floor. The bare loop is the same run without page, scheduler or browser, in a process of its own.
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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CASES = {
    "blobs, MLP": {"data": "blobs", "steps": "2000"},
    "MNIST, CNN": {"data": "mnist", "steps": "2000"},
}
BARE = """
import json, sys, time
from lab.config import RunConfig
from lab.run import Run
run = Run(RunConfig.from_settings(json.loads(sys.argv[1])))
run.start(); run.step()
begun = time.perf_counter()
while time.perf_counter() < begun + float(sys.argv[2]) and not run.finished:
    run.step()
print((run.steps_done - 1) / (time.perf_counter() - begun))
"""
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
TICKS = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measures every case and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--height", type=int, default=1700, help="of the window; 1700 shows every view")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet, env=environment)
    try:
        wait_for(f"http://127.0.0.1:{port}/_stcore/health")
        rows = {name: measure(port, server.pid, query, given) for name, query in CASES.items()}
    finally:
        server.terminate()
        server.wait(timeout=20)
    for name, row in rows.items():
        print(name, "; ".join(f"{key}: {value:.4g}" for key, value in row.items()), sep=": ")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def measure(port: int, server: int, query: dict[str, str], given: argparse.Namespace) -> dict[str, float]:
    """One case: the first seconds of training after Play, then clicks while it trains on."""
    from playwright.sync_api import ViewportSize, sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    seconds = given.seconds
    address = "&".join(f"{key}={value}" for key, value in query.items())
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium,
            args=ARGUMENTS,
            viewport=ViewportSize(width=1280, height=given.height),
        )
        page = context.new_page()
        begun = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/train?{address}")
        panel = page.locator(".lab:not([data-frames='0'])")
        panel.wait_for()
        first = time.perf_counter() - begun
        page.wait_for_timeout(1500)
        page.get_by_role("button", name="Play", exact=True).click()
        before = look(panel, server)
        delays = []
        while time.perf_counter() < before["time"] + seconds:
            page.wait_for_timeout(100)
            delays.append(float(panel.get_attribute("data-delay") or "nan"))
        after = look(panel, server)
        clicks = [click(page, panel) for _ in range(20)]
        context.close()
    bare = subprocess.run(
        [sys.executable, "-c", BARE, json.dumps(query), str(seconds)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    spent = {key: after[key] - before[key] for key in after}
    frames = max(spent["frames"], 1)
    return {
        "first picture s": first,
        "frames/s": spent["frames"] / spent["time"],
        "snapshot to pixel ms, median": statistics.median(delays),
        "server ms/frame with training": 1000 * spent["server"] / frames,
        "browser ms/frame": 1000 * spent["browser"] / frames,
        "click to text ms, median": 1000 * statistics.median(clicks),
        "click to text ms, p95": 1000 * sorted(clicks)[int(0.95 * len(clicks)) - 1],
        "steps/s": spent["steps"] / spent["time"],
        "steps/s of the bare loop": float(bare.stdout),
    }


def look(panel: Any, server: int) -> dict[str, float]:
    """Frames drawn, steps done and processor seconds so far."""
    found = {
        "frames": float(panel.get_attribute("data-frames") or 0),
        "steps": float(panel.get_attribute("data-step") or 0),
        "time": time.perf_counter(),
    }
    times = processor_seconds()
    found["server"] = times.get(server, (0.0, ""))[0]
    found["browser"] = sum(seconds for seconds, name in times.values() if "chrom" in name)
    return found


def processor_seconds() -> dict[int, tuple[float, str]]:
    """Seconds of processor time and name of every process (Linux)."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8")
        except OSError:
            continue
        name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        found[int(folder.name)] = ((int(fields[11]) + int(fields[12])) / TICKS, name)
    return found


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
    for _ in range(300):
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not come up")


if __name__ == "__main__":
    main()
