"""The losses, one file each, and the wrappers around them. Classes load on first use."""

from __future__ import annotations

import importlib
from typing import Any

_AROUND = ("wrappers", "cross_batch_memory", "batched")


def _around() -> dict[str, Any]:
    """The wrappers and functions that belong here, by name."""
    modules = [importlib.import_module(f"losslib.{name}") for name in _AROUND]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from losslib import catalog

        known = catalog.losses() | _around()
        if name in known:
            return known[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from losslib import catalog

    return sorted([*globals(), *catalog.losses(), *_around()])
