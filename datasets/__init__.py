"""Data sets: one file each, found by scanning this folder; listing them loads no data.

A file declares `TITLE`, `SUMMARY`, `KIND` ("points" or "images"), `OPTIONS` and `load(seed, **options)`; one
with a continuous label says what that is in `CONTINUOUS`.
Nothing but numpy and losslib's parameter declarations is needed to load one.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections import OrderedDict
from functools import cache
from typing import Any

from datasets.base import Dataset, DatasetSpec
from losslib.errors import ParameterError
from losslib.params import Integer, Param

__all__ = ["Dataset", "DatasetSpec", "catalog", "get", "load"]

MOST, ROOM = 32, 64_000_000  # data sets that are kept, and their bytes; the last one in any case
_LOADED: OrderedDict[tuple[str, int, tuple[tuple[str, Any], ...]], Dataset] = OrderedDict()
_LOCK = threading.Lock()

SEED = Param(0, valid=Integer(0, 2**31 - 1), name="seed", meaning="where the random numbers start")


@cache
def catalog() -> dict[str, DatasetSpec]:
    """Name to declaration of every data set, sorted by name."""
    found: dict[str, DatasetSpec] = {}
    for entry in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{entry.name}")
        if hasattr(module, "TITLE") and hasattr(module, "load"):
            found[entry.name] = DatasetSpec(
                entry.name,
                module.TITLE,
                module.SUMMARY,
                module.OPTIONS,
                module.KIND,
                module.load,
                getattr(module, "CONTINUOUS", ""),
            )
    return dict(sorted(found.items()))


def get(name: str) -> DatasetSpec:
    """The declaration of that name. Raises ParameterError naming near misses."""
    known = catalog()
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known data sets: {', '.join(known)}"
        raise ParameterError(f"no data set is called {name!r}; {hint}")
    return known[name]


def load(name: str, /, seed: int = 0, **options: Any) -> Dataset:
    """The data set; equal arguments give equal arrays, and the same object while it is cached.

    Args:
        name: name in the catalog.
        seed: whole number >= 0; fixes generated points and the split.
        **options: the data set's own options; defaults fill the rest.

    Raises:
        ParameterError: unknown name or option, or a value outside its domain.
    """
    checked = get(name).check(options)
    return _load(name, SEED.check(seed, "datasets.load"), tuple(checked.items()))


def _load(name: str, seed: int, options: tuple[tuple[str, Any], ...]) -> Dataset:
    key = (name, seed, options)
    with _LOCK:
        if key in _LOADED:
            _LOADED.move_to_end(key)
            return _LOADED[key]
    made = get(name).loader(seed, **dict(options))
    with _LOCK:
        kept = _LOADED.setdefault(key, made)  # somebody else may have been faster
        while len(_LOADED) > 1 and (len(_LOADED) > MOST or _held() > ROOM):
            _LOADED.popitem(last=False)
    return kept


def _held() -> int:
    """Bytes of the arrays of all that is kept; those that several data sets share count once."""
    arrays = {
        id(array): array.nbytes
        for data in _LOADED.values()
        for array in vars(data).values()
        if hasattr(array, "nbytes")
    }
    return sum(arrays.values())
