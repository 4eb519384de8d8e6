"""Drags in a real browser, beside the target: from the moved pointer to the drawn answers of the losses.

    python -m benchmarks.playground [--moves 300] [--case "eight points, four losses"] [--json out.json]

The pointer moves 60 times a second. Each answer that was drawn counts from the pointer's event that it
answers; positions that a newer one overtook while a question was on its way have none. Server and Chromium
run on this machine and share its cores. "others" says how many cores other programs took meanwhile: figures
hold on a quiet machine. Needs Linux (/proc).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from benchmarks.live_view import browser, server
from benchmarks.processes import machine_seconds, processes, seconds_of

EIGHT = "0.95~0.2~1_0.75~0.6~1_-0.1~1~2_-0.6~0.8~2_-1~-0.1~3_-0.75~-0.65~3_0.15~-1~4_0.7~-0.7~4"
CASES: dict[str, dict[str, Any]] = {
    "three points, one loss": {"losses": ["ContrastiveLoss"]},
    "three points, two losses": {"losses": ["ContrastiveLoss", "TripletMarginLoss"]},
    "eight points, four losses": {
        "losses": ["ContrastiveLoss", "TripletMarginLoss", "MultiSimilarityLoss", "FastAPLoss"],
        "points": EIGHT,
    },
}
PACE = 1 / 60
# figure: its unit, its target ("" for none)
FIGURES = {
    "pointer to drawn answer, median": ("ms", ""),
    "pointer to drawn answer, p95": ("ms", "<= 100"),
    "answers drawn": ("1/s", ""),
    "server an answer": ("ms", ""),
    "others": ("cores", ""),
}


def main() -> None:
    """Measures the cases and prints one table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one; may be repeated")
    parser.add_argument("--moves", type=int, default=300, help="of the pointer in one drag")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    given = parser.parse_args()
    with browser(1100) as (page, chromium), server() as (port, process):
        watched = {"server": process, "browser": chromium}
        rows = {name: measure(page, port, CASES[name], given.moves, watched) for name in given.case or CASES}
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


def measure(
    page: Any, port: int, case: dict[str, Any], moves: int, watched: dict[str, int]
) -> dict[str, float]:
    """One long drag of the first point, there and back."""
    query = "&".join(f"playground.losses={name}" for name in case["losses"])
    points = f"&playground.points={case['points']}" if "points" in case else ""
    page.goto(f"http://127.0.0.1:{port}/playground?{query}{points}")
    board = page.locator(".play[data-transport='socket']")
    board.wait_for()
    page.wait_for_timeout(6000)  # the server's warm-up and the first regions end
    box = page.locator(".board").first.locator(".point .grip").first.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    before = look(watched)
    for k in range(moves):
        due = before["time"] + PACE * (k + 1)
        way = abs((k % 120) - 60)
        page.mouse.move(x - 120 + 2 * way, y + way)
        time.sleep(max(0.0, due - time.perf_counter()))
    after = look(watched)
    page.mouse.up()
    page.wait_for_timeout(300)
    delays = sorted(float(delay) for delay in board.evaluate("board => board.delays"))
    spent = {key: after[key] - before[key] for key in after}
    ours = spent["server"] + spent["browser"]
    return {
        "pointer to drawn answer, median": delays[len(delays) // 2],
        "pointer to drawn answer, p95": delays[round(0.95 * len(delays)) - 1],
        "answers drawn": len(delays) / spent["time"],
        "server an answer": 1000 * spent["server"] / len(delays),
        "others": max(0.0, (spent["machine"] - ours) / spent["time"]),
    }


def look(watched: dict[str, int]) -> dict[str, float]:
    """The clock, and processor seconds so far."""
    known = processes()
    spent = {name: seconds_of(number, known) for name, number in watched.items()}
    return {"time": time.perf_counter(), "machine": machine_seconds(), **spent}


if __name__ == "__main__":
    main()
