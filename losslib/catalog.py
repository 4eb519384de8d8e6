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

VARIABLE = "LOSSLAB_LOSSES"


@cache
def losses() -> dict[str, type[Any]]:
    """Class name to class, sorted by name, for every loss of the library and of `LOSSLAB_LOSSES`.

    The environment variable names modules of your own, or single classes, separated by commas:
    my_package.my_losses, my_package.my_file:MyLoss. Of a module those count that derive from BaseLoss, and
    modules of torch whose name ends in Loss, or, where it has neither, all that can be called as a loss;
    `losslib.own` says how these are called.

    Raises:
        ParameterError: a module of `LOSSLAB_LOSSES` cannot be imported, has no loss, or takes a known name.
    """
    import losslib.losses
    from losslib.base import BaseLoss

    found = _classes(losslib.losses, BaseLoss)
    for target in filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(","))):
        own = _own(target)
        if not own or own.keys() & found.keys():
            what = f"{min(own.keys() & found.keys())} is taken" if own else "it defines no torch.nn.Module"
            raise ParameterError(f"{VARIABLE}: {target!r} adds no loss: {what}")
        found |= own
    return {name: found[name] for name in sorted(found)}


def add(target: str) -> str:
    """Adds a loss of your own, `package.module:Class`, for the rest of this process; returns its name.

    Raises:
        ParameterError: it cannot be imported, is no loss, or its name is taken.
    """
    before = os.environ.get(VARIABLE, "")
    known = [part.strip() for part in before.split(",")]
    if target not in known:
        os.environ[VARIABLE] = f"{before},{target}" if before else target
        losses.cache_clear()
    try:
        losses()
    except ParameterError:
        os.environ[VARIABLE] = before
        losses.cache_clear()
        raise
    return target.rpartition(":")[2]


def _own(target: str) -> dict[str, type[Any]]:
    """The losses of a module, or the one class named after a colon."""
    from torch import nn

    from losslib.base import BaseLoss
    from losslib.own import as_loss

    name, colon, wanted = target.partition(":")
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise ParameterError(f"{VARIABLE}: {name!r} cannot be imported ({error})") from error
    if not colon:
        classes = _defined(module, nn.Module)
        chosen = {n: c for n, c in classes.items() if issubclass(c, BaseLoss) or n.endswith("Loss")}
        if not chosen:
            return _called_as_losses(classes)
    else:
        found = getattr(module, wanted, None)
        if not (isinstance(found, type) and issubclass(found, nn.Module)):
            raise ParameterError(f"{VARIABLE}: {name!r} has no class {wanted!r} derived from torch.nn.Module")
        chosen = {wanted: found}
    return {n: as_loss(c) for n, c in chosen.items()}


def _called_as_losses(classes: dict[str, type[Any]]) -> dict[str, type[Any]]:
    """Those of the modules that can be called with embeddings and labels; the first refusal if none can."""
    from losslib.own import as_loss

    found, refusals = {}, []
    for name, made_by in classes.items():
        try:
            found[name] = as_loss(made_by)
        except ParameterError as error:
            refusals.append(error)
    if refusals and not found:
        raise refusals[0]
    return found


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
