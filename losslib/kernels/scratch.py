"""Memory for a call's large buffers, which a thread keeps from one call to the next.

Fresh memory costs a page fault for every 4 KiB first written: up to a third of a call at 1,024 rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import torch
from torch import Tensor

MOST = 16 << 20  # bytes that a thread keeps; what goes beyond is fresh
_ALIGNED = 64
_LARGE = 1 << 16  # bytes; less than that comes without page faults


class _Kept(threading.local):
    def __init__(self) -> None:
        self.store: Tensor | None = None
        self.depth = 0
        self.used = 0
        self.wanted = 0


_KEPT = _Kept()


@contextmanager
def lease() -> Iterator[None]:
    """Inside it `take` gives memory of the thread, all of it to be given up at the end."""
    kept = _KEPT
    before = kept.used
    kept.depth += 1
    try:
        yield
    finally:
        kept.depth -= 1
        kept.used = before
        if kept.depth == 0:
            _fit(kept)


def _fit(kept: _Kept) -> None:
    """Make room for the next call of this size."""
    wanted, kept.wanted, kept.used = min(kept.wanted, MOST), 0, 0
    if kept.store is None or len(kept.store) < wanted:
        with torch.inference_mode(False):  # a tensor made in inference mode could not be written outside it
            kept.store = torch.empty(wanted, dtype=torch.uint8, device="cpu")


def take(*shape: int, dtype: torch.dtype) -> Tensor:
    """An uninitialised tensor on the CPU; inside a lease for as long as that lasts. No result may be one."""
    kept = _KEPT
    size = prod(shape) * dtype.itemsize
    if kept.depth and size >= _LARGE:
        start = kept.used
        kept.used += -(-size // _ALIGNED) * _ALIGNED
        kept.wanted = max(kept.wanted, kept.used)
        if kept.store is not None and start + size <= len(kept.store):
            return kept.store[start : start + size].view(dtype).view(shape)
    return torch.empty(shape, dtype=dtype, device="cpu")
