"""Memory for a call's buffers, which a thread keeps from one call to the next.

Fresh memory costs a page fault for every 4 KiB first written: up to a third of a call at 1,024 rows.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

MOST = 16 << 20  # bytes that a thread keeps; what goes beyond is fresh
_ALIGNED = 64
_VIEWS = 2048  # of its memory that a thread keeps
_is_compiling = torch.compiler.is_compiling


class _Kept(threading.local):
    def __init__(self) -> None:
        self.store: Tensor | None = None
        # by start, shape and dtype, each with its end: a view takes longer to make than to fill
        self.views: dict[tuple[int, tuple[int, ...], torch.dtype], tuple[Tensor, int]] = {}
        self.bytes = 0
        self.depth = 0
        self.used = 0
        self.wanted = 0


_KEPT = _Kept()


class _Lease:
    """Inside it `take` gives memory of the thread, all of it to be given up at the end."""

    def __enter__(self) -> None:
        kept = _KEPT
        self.before = kept.used
        kept.depth += 1

    def __exit__(self, *why: object) -> None:
        kept = _KEPT
        kept.depth -= 1
        kept.used = self.before
        if kept.depth == 0:
            _fit(kept)


lease = _Lease


def _fit(kept: _Kept) -> None:
    """Make room for the next call of this size."""
    wanted, kept.wanted, kept.used = min(kept.wanted, MOST), 0, 0
    if kept.store is None or kept.bytes < wanted:
        with torch.inference_mode(False):  # a tensor made in inference mode could not be written outside it
            kept.store = torch.empty(wanted, dtype=torch.uint8, device="cpu")
        kept.views, kept.bytes = {}, wanted


def take(*shape: int, dtype: torch.dtype) -> Tensor:
    """An uninitialised tensor on the CPU; inside a lease for as long as that lasts. No result may be one."""
    kept = _KEPT
    if not kept.depth:
        return torch.empty(shape, dtype=dtype, device="cpu")
    start = kept.used
    found = kept.views.get((start, shape, dtype))
    if found is None:
        found = _made(kept, start, shape, dtype)
    view, kept.used = found
    return view


def upright(rows: int, columns: int, *, dtype: torch.dtype) -> Tensor:
    """The same, (rows, columns), but a column lies in one piece in memory."""
    return take(columns, rows, dtype=dtype).t()


def _made(kept: _Kept, start: int, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Tensor, int]:
    """A tensor in the memory from `start` on, or a fresh one beyond it, and where the next may start."""
    size = prod(shape) * dtype.itemsize
    stop = start - (-size // _ALIGNED) * _ALIGNED
    kept.wanted = max(kept.wanted, stop)
    if kept.store is None or start + size > kept.bytes:
        return torch.empty(shape, dtype=dtype, device="cpu"), stop
    if len(kept.views) >= _VIEWS:
        kept.views.clear()
    with torch.inference_mode(False):  # as above
        view = kept.store[start : start + size].view(dtype).view(shape)
    kept.views[start, shape, dtype] = view, stop
    return view, stop


def leased() -> bool:
    """Whether a lease holds: it is taken only where values are known, on the CPU."""
    return not _is_compiling() and _KEPT.depth > 0


def room(like: Tensor) -> Tensor:
    """An uninitialised tensor of the same shape, dtype and device, by `take` where a lease holds."""
    return take(*like.shape, dtype=like.dtype) if leased() else torch.empty_like(like)


def again(free: Tensor, like: Tensor) -> Tensor:
    """Memory that is free again, or another tensor of the shape of `like` where that is not its own."""
    return free if free.shape == like.shape else room(like)


def constant(value: float, like: Tensor) -> Tensor:
    """A number as a tensor (1,), to be read only: what takes `out=` takes no number in its first place."""
    return _constant(value, like.dtype) if leased() else like.new_full((1,), value)


@lru_cache(maxsize=256)
def _constant(value: float, dtype: torch.dtype) -> Tensor:
    with torch.inference_mode(False):
        return torch.full((1,), value, dtype=dtype, device="cpu")
