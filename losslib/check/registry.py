"""The checks there are: a decorated function anywhere in this package takes part in every audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from losslib.check.subject import Subject


class NotApplicable(Exception):  # noqa: N818 - not an error: the check says why it has nothing to say
    """Raised by a check that does not apply to the loss; the message is the reason."""


@dataclass(frozen=True)
class Finding:
    """What one check saw."""

    holds: bool
    tried: str
    got: str
    expected: str


@dataclass(frozen=True)
class CheckFunction:
    """A check with its name and the reason for it."""

    name: str
    why: str
    run: Callable[[Subject], Finding]


CHECKS: dict[str, CheckFunction] = {}


def check(name: str, why: str) -> Callable[[Callable[[Subject], Finding]], Callable[[Subject], Finding]]:
    """Decorator that adds a check to every audit.

    Args:
        name: short name, unique.
        why: one sentence on what goes wrong in training where the property does not hold.
    """

    def register(function: Callable[[Subject], Finding]) -> Callable[[Subject], Finding]:
        CHECKS[name] = CheckFunction(name, why, function)
        return function

    return register
