"""losslib: metric-learning losses for PyTorch.

Submodules load on first use: ``losslib.losses``, ``losslib.distances``, ``losslib.reducers``,
``losslib.regularizers``, ``losslib.pairs``, ``losslib.catalog`` and the rest.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

__version__ = "0.1.0"


def _submodules() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(__path__)]


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in _submodules():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_submodules()])
