"""Time and memory of every registered loss beside pytorch-metric-learning, lightly where it is installed, and
the limit.

    python -m benchmarks.losses [--short] [--sizes 64,256] [--loss NAME ...] [--no-memory] [--json out.json]

Forward and backward pass of embeddings (B, 128) in float32 with 16 classes in random order, on one thread, in
processor time. Peer, ours and the limit take turns in one process; ours is the second of two runs after each
peer call, because a peer that frees gigabytes leaves page faults to whoever comes next; ratios are medians of
paired ratios. The limit is what an exact loss over a B x B matrix cannot avoid without symmetry: three matrix
products of that size and one exponential, in the same turn. A peer that would take too long is left out at
that size and above. Memory is the growth of the peak over the inputs, each case in a process of its own
(Linux only). Beside the defaults stand steep options and references as a set of their own, from 256 rows on.
`--short` takes the losses with fused forms at three sizes, for the README.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from benchmarks.processes import kilobytes_of
from losslib import catalog
from losslib.kernels import explain
from losslib.kernels.forms import kernels

COLUMNS, CLASSES = 128, 16
SIZES, SHORT_SIZES = (32, 64, 128, 256, 1024, 2048), (64, 256, 1024)
MEMORY_SIZE, MEMORY_LIMIT = 4096, 4 << 30
TOO_LONG = 3.0  # seconds that a peer's call may be expected to take
ENOUGH = 0.6  # seconds spent on one case
GIVEN = {"num_classes": CLASSES, "embedding_size": COLUMNS, "class_counts": (10,) * CLASSES}
SLOW = 0.3  # seconds from which a call is not repeated
VARIANTS = {  # with options, beside the registered losses
    "DCLW": ("DecoupledContrastiveLoss", {"sigma": 0.5}),
    "Circle, gamma 256": ("CircleLoss", {"gamma": 256.0}),
    "MultiSimilarity, beta 200": ("MultiSimilarityLoss", {"beta": 200.0}),
    "SupCon, temperature 0.01": ("SupConLoss", {"temperature": 0.01}),
    "NCA, scale 30": ("NCALoss", {"softmax_scale": 30.0}),
}
APART = ("ContrastiveLoss", "CircleLoss", "SupConLoss", "TripletMarginLoss")  # and with references
REFERENCES = ", references"
LIGHTLY = {  # module, class and options of the loss with our defaults
    "NTXentLoss": ("ntx_ent_loss", "NTXentLoss", {"temperature": 0.07}),
    "DecoupledContrastiveLoss": ("dcl_loss", "DCLLoss", {"temperature": 0.1}),
    "DCLW": ("dcl_loss", "DCLWLoss", {"temperature": 0.1, "sigma": 0.5}),
}

Call = Callable[[], object]


def batch(rows: int, two_views: bool = False) -> tuple[Tensor, Tensor]:
    """Embeddings and labels, the same in every process; two views of each sample or 16 classes."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, COLUMNS, generator=generator)
    if two_views:
        return x, torch.arange(rows) % (rows // 2)
    return x, (torch.arange(rows) % CLASSES)[torch.randperm(rows, generator=generator)]


def made(name: str) -> Any:
    """The loss with its defaults, or a variant with its options."""
    name, options = VARIANTS.get(name.removesuffix(REFERENCES), (name.removesuffix(REFERENCES), {}))
    cls: Any = catalog.get(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cls(**{needed: GIVEN[needed] for needed in cls.required}, **options)


def ours(name: str, rows: int, two_views: bool = False) -> Call:
    """A training step of the loss, without a model."""
    loss = made(name)
    x, y = batch(rows, two_views)
    second = {"ref_emb": x.flip(0)} if "two views" in loss.needs else {"labels": y}
    second |= references_of(name, rows)
    return _step(lambda z: loss(z, **second), x)


def references_of(name: str, rows: int) -> dict[str, Tensor]:
    """As many references as rows, for a case that has them."""
    if not name.endswith(REFERENCES):
        return {}
    generator = torch.Generator().manual_seed(1)
    y = torch.randn(rows, COLUMNS, generator=generator)
    return {"ref_emb": y, "ref_labels": torch.arange(rows) % CLASSES}


def pml_loss(name: str) -> Any:
    """The loss in pytorch-metric-learning with our options; None where there is none."""
    if name == "DCLW" or not _installed("pytorch_metric_learning"):
        return None
    name, chosen = VARIANTS.get(name.removesuffix(REFERENCES), (name.removesuffix(REFERENCES), {}))
    cls = catalog.get(name)
    if cls.pml is None:
        return None
    options = {needed: GIVEN[needed] for needed in cls.required}
    options |= {option: param.default for option, param in cls.params.items()} | chosen
    spelt = {cls.pml.renamed.get(option, option): value for option, value in options.items()}
    spelt.pop("", None)
    theirs = getattr(importlib.import_module("pytorch_metric_learning.losses"), cls.pml.class_name)
    return theirs() if "two views" in cls.needs else theirs(**spelt)


def pml(name: str, rows: int) -> Call | None:
    """A training step of that loss; None where there is none."""
    loss = pml_loss(name)
    if loss is None:
        return None
    x, y = batch(rows)
    cls = type(made(name))
    if "two views" in cls.needs:
        return _step(lambda z: loss(z, ref_emb=x.flip(0)), x)
    labels = {cls.pml.labels if cls.pml else "labels": y} | references_of(name, rows)

    def call(z: Tensor) -> Any:
        if hasattr(loss, "hist_"):  # DynamicSoftMarginLoss keeps the graph of its last call in its memory
            loss.hist_ = loss.hist_.detach()
        return loss(z, **labels)

    return _step(call, x)


def lightly(name: str, rows: int) -> Call | None:
    """The same of lightly, on two views of each sample; None where there is none or it is not installed."""
    if name not in LIGHTLY or importlib.util.find_spec("lightly") is None:
        return None
    module, class_name, options = LIGHTLY[name]
    loss = getattr(_from_lightly(module), class_name)(**options)
    x, _ = batch(rows)
    return _step(lambda z: loss(z[: rows // 2], z[rows // 2 :]), x)


def _from_lightly(module: str) -> ModuleType:
    """A module of losses alone: lightly's packages import torchvision, which need not fit this torch."""
    found = importlib.util.find_spec("lightly")
    assert found is not None
    for package in ("loss", "utils", "models", "models.modules"):
        bare = ModuleType(f"lightly.{package}")
        bare.__path__ = [
            str(Path(root, *package.split("."))) for root in found.submodule_search_locations or ()
        ]
        sys.modules.setdefault(bare.__name__, bare)
    sys.modules.setdefault("lightly.models.utils", ModuleType("lightly.models.utils"))  # of its memory bank
    return importlib.import_module(f"lightly.loss.{module}")


def _step(call: Callable[[Tensor], Any], x: Tensor) -> Call:
    def step() -> None:
        leaf = x.detach().clone().requires_grad_()
        value = call(leaf)
        if value.requires_grad:
            value.backward()

    return step


def limit(rows: int) -> Call:
    """Three matrix products and one exponential, into memory that is already there."""
    x = torch.nn.functional.normalize(batch(rows)[0])
    matrix, pulled = torch.empty(rows, rows), torch.empty_like(x)

    def step() -> None:
        torch.exp(torch.mm(x, x.t(), out=matrix), out=matrix)
        torch.mm(matrix, x, out=pulled)
        torch.mm(matrix.t(), x, out=pulled)

    return step


def seconds(call: Call, times: int = 1) -> float:
    """Processor time of a call."""
    begun = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begun) / times


def compare(mine: Call, peer: Call | None, floor: Call, peer_took: float) -> dict[str, float]:
    """Medians: milliseconds, multiple of the limit, and ratio to the peer, a call of which took so long."""
    floor()
    first = max(seconds(mine), peer_took, 1e-5)
    times = max(1, min(20, int(0.02 / first)))
    least = 1 if first > SLOW else 3
    spent = time.perf_counter()
    rows: list[tuple[float, float, float]] = []
    while len(rows) < least or (len(rows) < 15 and time.perf_counter() - spent < ENOUGH):
        theirs = seconds(peer, times) if peer else 0.0
        if peer or not rows:
            mine()
        own = seconds(mine, times)
        rows.append((own, theirs / own, own / seconds(floor, times)))
    own, ratio, multiple = (statistics.median(column) for column in zip(*rows, strict=True))
    return {"ms": own * 1e3, "of_limit": multiple} | ({"ratio": ratio} if peer else {})


def time_of(name: str, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """One row a size: ours, the peers, the limit."""
    found: list[dict[str, Any]] = []
    known = {"pml": (0.0, 1), "lightly": (0.0, 1)}  # what a call took, and at what size
    for rows in sizes:
        row: dict[str, Any] = {"loss": name, "B": rows}
        for library, make in (("pml", pml), ("lightly", lightly)):
            took = 0.0
            expected = known[library][0] * (rows / known[library][1]) ** 3
            try:
                peer = make(name, rows) if expected < TOO_LONG else None
                if peer is not None:
                    took = seconds(peer)
                    took = took if took > SLOW else seconds(peer)
                    known[library] = (took, rows)
            except Exception as error:
                row[f"{library}_error"] = f"{type(error).__name__}: {error}"[:80]
                peer = None
            if library == "pml" or peer is not None:
                two_views = library == "lightly" or name == "DCLW"
                result = compare(ours(name, rows, two_views), peer, limit(rows), took)
                row |= {f"{key}_{library}" if key == "ratio" else key: v for key, v in result.items()}
        row["form"] = form_of(name, rows)
        found.append(row)
        print(as_text(row), flush=True)
    return found


def form_of(name: str, rows: int) -> str:
    """The form that the loss takes under its defaults."""
    apart = rows if name.endswith(REFERENCES) else None
    return explain(made(name), rows, apart).split(": ")[1].split(" ")[0]


def memory_of(name: str, library: str) -> float | None:
    """Peak over the inputs in MiB, in a fresh process; None where it fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.losses", "--peak", library, name],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=Path(__file__).resolve().parents[1],
        )
    except subprocess.TimeoutExpired:
        return None
    return float(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


def peak(library: str, name: str) -> None:
    """Print the growth of this process's peak in MiB over one step."""
    import resource

    torch.set_num_threads(1)
    make: Any = {"ours": ours, "pml": pml, "lightly": lightly}[library]
    small, step = make(name, 32), make(name, MEMORY_SIZE)
    if small is None:
        return
    small()  # first-use constants are not what is measured
    now = kilobytes_of(os.getpid(), "VmSize:") * 1024
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY_LIMIT, resource.RLIM_INFINITY))
    Path("/proc/self/clear_refs").write_text("5")
    before = kilobytes_of(os.getpid(), "VmRSS:")
    step()
    print((kilobytes_of(os.getpid(), "VmHWM:") - before) / 1024)


def _large(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes at which blocks of whole rows come into their own."""
    return tuple(size for size in sizes if size >= 256) or sizes


def _installed(package: str) -> bool:
    with contextlib.suppress(ImportError):
        importlib.import_module(package)
        return True
    return False


def as_text(row: dict[str, Any]) -> str:
    """One line of the table."""
    ratios = "  ".join(
        f"{library} {row[f'ratio_{library}']:8.2f} x"
        for library in ("pml", "lightly")
        if f"ratio_{library}" in row
    )
    said = ratios or row.get("pml_error", "no peer")
    return f"{row['loss']:36s} {row['B']:5d} {row['ms']:9.2f} ms {row['of_limit']:7.2f} x limit  {said}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--sizes", type=lambda text: tuple(int(part) for part in text.split(",")))
    parser.add_argument("--loss", nargs="*", default=None)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.peak:
        return peak(*options.peak)
    torch.set_num_threads(1)
    fused = sorted(cls.__name__ for cls in kernels())
    further = [*VARIANTS, *(name + REFERENCES for name in APART)]
    names = options.loss or (fused if options.short else [*catalog.losses(), *further])
    sizes = options.sizes or (SHORT_SIZES if options.short else SIZES)
    times = [row for name in names for row in time_of(name, _large(sizes) if name in further[1:] else sizes)]
    memory = []
    if not options.no_memory and Path("/proc/self/clear_refs").exists():
        print(f"\npeak in MiB at B = {MEMORY_SIZE}; - where a peer is missing or fails at 4 GiB")
        libraries = ("ours", "pml", "lightly")
        fused += further
        cases = [(name, library) for name in names if name in fused for library in libraries]
        with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
            peaks = dict(zip(cases, pool.map(lambda case: memory_of(*case), cases), strict=True))
        for name in (name for name in names if name in fused):
            row = {library: peaks[name, library] for library in libraries}
            memory.append({"loss": name, "B": MEMORY_SIZE} | row)
            texts = (f"{library} {'-' if mib is None else f'{mib:.0f}':>6s}" for library, mib in row.items())
            print(f"{name:36s} {'  '.join(texts)}")
    if options.json:
        about = {"machine": platform.processor() or platform.machine(), "torch": torch.__version__}
        options.json.write_text(json.dumps({"about": about, "times": times, "memory": memory}, indent=1))
    return None


if __name__ == "__main__":
    main()
