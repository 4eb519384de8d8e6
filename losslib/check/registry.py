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
    """A check with its name, the reason for it, and whether it looks at gradients."""

    name: str
    why: str
    run: Callable[[Subject], Finding]
    slopes: bool = False


CHECKS: dict[str, CheckFunction] = {}


def check(
    name: str, why: str, slopes: bool = False
) -> Callable[[Callable[[Subject], Finding]], Callable[[Subject], Finding]]:
    """Decorator that adds a check to every audit.

    Args:
        name: short name, unique.
        why: one sentence on what goes wrong in training where the property does not hold.
        slopes: whether it looks at gradients, and so says nothing where there are none.
    """

    def register(function: Callable[[Subject], Finding]) -> Callable[[Subject], Finding]:
        CHECKS[name] = CheckFunction(name, why, function, slopes)
        return function

    return register
