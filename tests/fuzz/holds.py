"""The list of properties, and how one is tried.

Hypothesis draws a structure (which loss, how many rows, of which precision, which edge, how a file is laid
out), and each structure is tried with several draws of values, each of which is an input. Hypothesis needs
milliseconds for a structure; a draw of values needs microseconds.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]
Draws = Iterator[random.Random]
PER_STRUCTURE = 10
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


class Property(NamedTuple):
    """A function that raises for a counterexample, its structure, and its share of a long run.

    The function is also given `draws`, one source of random values for each input it is to try.
    """

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


def run(one: Property, count: int, start: int = 0) -> tuple[str | None, int]:
    """The counterexample found or None, and how many inputs were tried; the same for the same `start`."""
    calls = 0

    def draws(number: int) -> Draws:
        nonlocal calls
        for turn in range(PER_STRUCTURE):
            calls += 1
            yield random.Random(number * PER_STRUCTURE + turn)

    def tried(number: int, **structure: object) -> None:
        one.function(draws=draws(number), **structure)

    rules = settings(
        max_examples=max(1, round(count / PER_STRUCTURE)),
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=QUIET,
        print_blob=False,
        report_multiple_bugs=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            seed(start)(rules(given(number=st.integers(0, 2**32 - 1), **one.given)(tried)))()
        except Exception as error:  # whatever it is, it is the finding
            notes = " ".join(getattr(error, "__notes__", ()))
            return f"{type(error).__name__}: {error} {notes}".strip(), calls
    return None, calls


def said(error: Exception) -> None:
    """A refusal says something, and not a page of it."""
    assert 10 < len(str(error)) < 1500, error
