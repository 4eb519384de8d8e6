"""One of several by its name, or a sentence with the names that are near."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Protocol, TypeVar

from losslib.errors import ParameterError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """What it is called in links and on the command line."""


T = TypeVar("T", bound=Named)


def one_named(name: str, every: Iterable[T], what: str) -> T:
    """The one of that name. Raises ParameterError naming near misses, "no <what> is called ..."."""
    known = {one.name: one for one in every}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=2, cutoff=0.5) or list(known)
        raise ParameterError(f"no {what} is called {name!r}; did you mean {' or '.join(near)}?")
    return known[name]
