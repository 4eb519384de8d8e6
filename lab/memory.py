"""Gives memory back to the system: on Linux, glibc keeps what threads have freed, in pools of its own."""

from __future__ import annotations

import contextlib
import ctypes
import sys

_ARENA_MAX = -8  # M_ARENA_MAX of <malloc.h>


def few_arenas(most: int = 2) -> None:
    """Lets threads share few pools. Every rerun of a page is a thread; by default each may get its own pool.

    Elsewhere than on glibc nothing happens.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).mallopt(_ARENA_MAX, most)


def give_back() -> None:
    """Returns free pages to the system; takes some milliseconds. Elsewhere than on glibc nothing happens."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
