"""The registries: every class in `losslib/losses/*.py` and `losslib/miners/*.py` is found by scanning."""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any

from losslib.errors import ParameterError


@cache
def losses() -> dict[str, type[Any]]:
    """Class name to class, sorted by name, for every loss of the library and of `LOSSLAB_LOSSES`.

    The environment variable names modules of your own, separated by commas: my_package.my_losses.

    Raises:
        ParameterError: a module of `LOSSLAB_LOSSES` cannot be imported, has no loss, or takes a known name.
    """
    import losslib.losses
    from losslib.base import BaseLoss

    found = _classes(losslib.losses, BaseLoss)
    for name in filter(None, map(str.strip, os.environ.get("LOSSLAB_LOSSES", "").split(","))):
        try:
            own = _defined(importlib.import_module(name), BaseLoss)
        except Exception as error:
            raise ParameterError(f"LOSSLAB_LOSSES: {name!r} cannot be imported ({error})") from error
        if not own or own.keys() & found.keys():
            what = (
                f"{min(own.keys() & found.keys())} is taken"
                if own
                else "it defines no subclass of losslib.base.BaseLoss"
            )
            raise ParameterError(f"LOSSLAB_LOSSES: {name!r} adds no loss: {what}")
        found |= own
    return {name: found[name] for name in sorted(found)}


@cache
def miners() -> dict[str, type[Any]]:
    """Class name to class, sorted by name, for every miner of the library."""
    import losslib.miners
    from losslib.miners.base import Miner

    return _classes(losslib.miners, Miner)


def _classes(package: ModuleType, base: type[Any]) -> dict[str, type[Any]]:
    """The subclasses of a base that the modules of a package define."""
    found: dict[str, type[Any]] = {}
    for entry in pkgutil.iter_modules(package.__path__):
        found |= _defined(importlib.import_module(f"{package.__name__}.{entry.name}"), base)
    return {name: found[name] for name in sorted(found)}


def _defined(module: ModuleType, base: type[Any]) -> dict[str, type[Any]]:
    """The subclasses of a base that a module itself defines."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and issubclass(value, base)
        and value is not base
        and value.__module__ == module.__name__
    }


def get(name: str) -> type[Any]:
    """The loss class of that name. Raises ParameterError naming near misses."""
    known = losses()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known losses: {_listed(list(known))}"
        raise ParameterError(f"no loss is called {name!r}; {hint}")
    return known[name]


def _listed(names: list[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


if __name__ == "__main__":
    import sys

    from losslib.loss_table import main

    sys.exit(main())
