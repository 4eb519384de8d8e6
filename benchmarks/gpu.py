"""The losses on a GPU: the tests marked gpu, then time and memory beside pytorch-metric-learning.

    python -m benchmarks.gpu [--json out.json]

Needs a CUDA device; ends in under 8 minutes. Forward and backward pass of embeddings (B, 128) in float32 with
16 classes, between device events, median of 10 after 3 to warm up; the peak is what torch's allocator held
over the inputs. A peer is left out from the size at which it fails or takes more than 2 s.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.losses import Call, batch, pml_loss
from losslib.kernels.forms import kernels

SIZES = (256, 1024, 4096, 8192)
TESTS, ALL = 200.0, 450.0  # seconds


def measure(call: Call) -> tuple[float, float]:
    """Milliseconds and peak MiB of a call."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(10):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        call()
        ended.record()
        torch.cuda.synchronize()
        times.append(begun.elapsed_time(ended))
        if times[-1] > 1000:
            break
    return statistics.median(times), (torch.cuda.max_memory_allocated() - before) / 2**20


def step(loss: Any, x: Tensor, y: Tensor) -> Call:
    """A training step without a model."""

    def call() -> None:
        leaf = x.detach().clone().requires_grad_()
        loss(leaf, y).backward()

    return call


def rows_of(cls: Any, until: float) -> list[dict[str, Any]]:
    """One row a size."""
    found: list[dict[str, Any]] = []
    peer = pml_loss(cls.__name__)
    for size in SIZES:
        if time.monotonic() > until:
            break
        x, y = (part.cuda() for part in batch(size))
        row: dict[str, Any] = {"loss": cls.__name__, "B": size}
        row["ms"], row["MiB"] = measure(step(cls().cuda(), x, y))
        if peer is not None:
            try:
                row["pml_ms"], row["pml_MiB"] = measure(step(peer.cuda(), x, y))
            except (RuntimeError, ValueError) as error:  # out of memory is a RuntimeError
                row["pml"] = type(error).__name__
            if row.get("pml_ms", 1e9) > 2000 / 64:  # the next size may cost the cube of it
                peer = None
        torch.cuda.empty_cache()
        found.append(row)
        print("  ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
    return found


def main() -> int:
    """Exit status of the tests, or 1 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device: nothing was measured", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore")
    begun, name = time.monotonic(), torch.cuda.get_device_name()
    tests = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "gpu", "tests/losslib"]
    try:
        status = subprocess.run(tests, timeout=TESTS, check=False).returncode
    except subprocess.TimeoutExpired:
        status = 1
    print(f"\n{name}, torch {torch.__version__}")
    rows = [row for cls in kernels() for row in rows_of(cls, begun + ALL)]
    if options.json:
        options.json.write_text(
            json.dumps({"device": name, "torch": torch.__version__, "rows": rows}, indent=1)
        )
    return status


if __name__ == "__main__":
    raise SystemExit(main())
