"""Peak memory of what must stay light: large batches, evaluation, memories, miners.

    python -m benchmarks.memory [--long] [--case NAME ...] [--json out.json]

Each case runs once in a process of its own, on one thread, in float32; its figure is the growth of the peak
over the inputs and a small first call (Linux only). Forward and backward pass where there is a gradient.
Beside it stand the limit, and what one matrix of that size alone would take. `--long` adds 65,536 rows
(minutes). Exit status 1 when a case is over its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.losses import COLUMNS, batch
from benchmarks.processes import kilobytes_of
from losslib import catalog, evaluation
from losslib.losses import CrossBatchMemory, anchor_batched_backward

MIB = 2**20
PATIENCE = 900.0
MEMORY_ROWS = 65_536
SMALL = 64

Step = Callable[[Tensor, Tensor], object]


class Case(NamedTuple):
    """What is done with so many rows, and the most it may take in MiB."""

    rows: int
    limit: float
    step: Step
    reference: int = 0  # rows on the other side, where it is another set
    long: bool = False


def loss(name: str) -> Step:
    """Forward and backward pass of a registered loss with its defaults."""
    made = catalog.get(name)()

    def step(x: Tensor, labels: Tensor) -> None:
        made(x.requires_grad_(), labels).backward()

    return step


def in_parts(name: str, anchors: int = 256) -> Step:
    """The backward pass with a few anchors at a time."""
    made = catalog.get(name)()
    return lambda x, labels: anchor_batched_backward(made, x.requires_grad_(), labels, anchors)


def remembered(name: str) -> Step:
    """A batch against a memory of 65,536 rows that is full."""

    def step(x: Tensor, labels: Tensor) -> None:
        made = CrossBatchMemory(catalog.get(name)(), COLUMNS, MEMORY_ROWS)
        made.embedding_memory, made.label_memory = batch(MEMORY_ROWS)
        made.fill = MEMORY_ROWS if len(x) > SMALL else SMALL
        made(x.requires_grad_(), labels).backward()

    return step


def mined(name: str) -> Step:
    """A miner with its defaults, ten tuples for each anchor."""
    made: Step = catalog.miners()[name](tuples_per_anchor=10)
    return made


def cases() -> dict[str, Case]:
    """Every case by its name."""
    softmax = ("SupConLoss", "NTXentLoss", "DecoupledContrastiveLoss")
    pairs = ("ContrastiveLoss", "MultiSimilarityLoss", "CircleLoss", "MarginLoss", "TripletMarginLoss")
    parts = ("ContrastiveLoss", "SupConLoss", "TripletMarginLoss")
    found = {name: Case(4096, 80, loss(name)) for name in (*pairs, *softmax)}
    found |= {f"{name}, large": Case(32_768, 256, loss(name)) for name in softmax}
    found |= {f"{name}, larger": Case(65_536, 512, loss(name), long=True) for name in softmax[:1]}
    found |= {f"anchor_batched_backward, {name}": Case(16_384, 256, in_parts(name)) for name in parts}
    found |= {
        f"CrossBatchMemory, {name}": Case(256, 1024, remembered(name), MEMORY_ROWS) for name in parts[:2]
    }
    found["recall_at_k"] = Case(20_000, 1024, evaluation.recall_at_k)
    found["map_at_r"] = Case(20_000, 1024, evaluation.map_at_r)
    return found | {name: Case(2048, 1024, mined(name)) for name in catalog.miners()}


def peak(name: str) -> None:
    """Print the growth of this process's peak in MiB and its processor seconds."""
    torch.set_num_threads(1)
    case = cases()[name]
    small, large = batch(SMALL), batch(case.rows)
    case.step(*small)  # first-use constants are not what is measured
    Path("/proc/self/clear_refs").write_text("5")
    before, started = kilobytes_of(os.getpid(), "VmRSS:"), time.process_time()
    case.step(*large)
    print(
        json.dumps(
            {"MiB": (kilobytes_of(os.getpid(), "VmHWM:") - before) / 1024, "s": time.process_time() - started}
        )
    )


def measured(name: str) -> dict[str, float]:
    """Peak and seconds of one case, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.memory", "--peak", name]
    home = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True, cwd=home)
    return dict(json.loads(done.stdout))


def main() -> int:
    summary, _, details = str(__doc__).partition("\n\n")
    parser = argparse.ArgumentParser(
        description=summary, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = cases()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--case", nargs="*", choices=known, metavar="NAME")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        peak(options.peak)
        return 0
    rows, over = [], 0
    print(f"{'':42s} {'rows':>7s} {'peak':>9s} {'limit':>9s} {'one matrix':>11s} {'time':>7s}")
    for name, case in known.items():
        if not (name in options.case if options.case else options.long or not case.long):
            continue
        matrix = case.rows * (case.reference or case.rows) * 4 / MIB
        found = measured(name)
        over += found["MiB"] > case.limit
        rows.append({"case": name, "rows": case.rows, "limit": case.limit, "matrix": matrix} | found)
        print(
            f"{name:42s} {case.rows:7,d} {found['MiB']:5.0f} MiB {case.limit:5.0f} MiB {matrix:7,.0f} MiB"
            f" {found['s']:5.1f} s{'  over' if found['MiB'] > case.limit else ''}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
