"""The miners, one file each: they choose the pairs or triplets that a loss sees. Classes load on first use.

A miner is called as `miner(embeddings, labels, ref_emb=None, ref_labels=None)` and its result is given to a
loss as `indices_tuple`.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        from losslib import catalog
        from losslib.miners.base import Miner

        found = Miner if name == "Miner" else catalog.miners().get(name)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from losslib import catalog

    return sorted([*globals(), *catalog.miners(), "Miner"])
