"""The list of properties."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]


class Property(NamedTuple):
    """A function that raises for a counterexample, what it is given, and its share of a long run."""

    function: Callable[..., None]
    given: dict[str, Strategy]
    weight: float


_FOUND: dict[str, Property] = {}


def holds(weight: float = 1.0, **given: Strategy) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declares a property; `weight` is its share of a long run, for those that cost little."""

    def declare(function: Callable[..., None]) -> Callable[..., None]:
        _FOUND[function.__name__] = Property(function, given, weight)
        return function

    return declare


@cache
def properties() -> dict[str, Property]:
    """All properties by name."""
    package = importlib.import_module("tests.fuzz")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("of_"):
            importlib.import_module(f"tests.fuzz.{module.name}")
    return dict(sorted(_FOUND.items()))


def said(error: Exception) -> None:
    """A refusal says something, and not a page of it."""
    assert 10 < len(str(error)) < 1500, error
