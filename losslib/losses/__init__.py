"""The losses, one file each, and the wrappers around them. Classes load on first use."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from losslib import catalog, wrappers

        found = catalog.losses().get(name, getattr(wrappers, name, None))
        if isinstance(found, type) and found.__module__.startswith("losslib."):
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from losslib import catalog, wrappers

    return sorted([*globals(), *catalog.losses(), *wrappers.__all__])
