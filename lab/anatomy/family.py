"""A family of curves: the same sliding pair under several values of one option."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.anatomy.slides import SIDES, Along, EntrySlide, RowSlide
from lab.anatomy.subject import Subject
from losslib.errors import ParameterError
from losslib.params import Param

MEMBERS = 5
WIDE = 50  # a range whose ends differ by this factor is covered in equal ratios, not equal steps
RISE, LOSS, GRADIENT = QUANTITIES = ("rise of the loss", "loss", "gradient")
GRID = np.linspace(0.02, np.pi - 0.02, 81)


@dataclass(frozen=True)
class Member:
    """The curves under one value of the option.

    Attributes:
        value: of the option.
        text: the value as it is written.
        current: whether it is the value in force.
        sides: what a positive and a negative pair meet.
    """

    value: Any
    text: str
    current: bool
    sides: dict[str, Along]


@dataclass(frozen=True)
class Family:
    """The members in order of the option's value.

    Attributes:
        param: the option.
        axis: the distance in words.
        inverted: whether larger is closer.
        members: one for each value the loss accepts.
        refused: a sentence for each value that it does not.
    """

    param: Param
    axis: str
    inverted: bool
    members: tuple[Member, ...]
    refused: tuple[str, ...]


def varied(subject: Subject) -> tuple[str, ...]:
    """Names of the options of which there are several values to compare."""
    return tuple(name for name, param in subject.cls.params.items() if len(ladder(param, param.default)) > 1)


def ladder(param: Param, current: Any) -> tuple[Any, ...]:
    """About five values across the range worth exploring, in order, the current one among them."""
    if param.explore is None:
        return (current,)
    if param.kind in ("bool", "choice"):
        return tuple(param.explore)
    low, high = param.explore[0], param.explore[-1]
    spread = np.geomspace if low > 0 and high / low >= WIDE else np.linspace
    found = [_accepted(param, float(f"{value:.3g}")) for value in spread(low, high, MEMBERS)]
    values = sorted({value for value in found if value is not None})
    if not _is_number(current):
        return (*values, current)
    # the current value takes the place of its nearest neighbour, but never of an end
    nearest = min(values[1:-1], key=lambda value: abs(value - current), default=None)
    inside = bool(values) and values[0] < current < values[-1]
    kept = [value for value in values if not inside or value != nearest]
    return tuple(sorted({current, *kept}))


def short(param: Param, value: Any) -> str:
    """The value as it is written, to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else param.format(value)


def _accepted(param: Param, value: float) -> Any:
    """The value in the option's own type, rounded where that is a whole number; None if it is refused."""
    for one in (value, round(value)):
        try:
            return param.check(one, "family")
        except ParameterError:
            continue
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def quantity(found: Along, what: str) -> NDArray[np.float64]:
    """One of `QUANTITIES` along the way, (G,): losses of other options differ in level, not only in shape."""
    if what == GRADIENT:
        return found.slope
    finite = found.value[np.isfinite(found.value)]
    return found.value - finite.min() if what == RISE and len(finite) else found.value


@lru_cache(maxsize=32)
def family(subject: Subject, name: str, slide: RowSlide | EntrySlide, axis: str, inverted: bool) -> Family:
    """The family of one option, on a slide that shows the loss as it is set."""
    param, current = subject.cls.params[name], subject.value(name)
    members, refused = [], []
    for value in ladder(param, current):
        one, text = subject.with_option(name, value), short(param, value)
        try:
            sides = {side: slide.along(one, side, GRID) for side in SIDES}
        except (ValueError, TypeError) as error:
            refused.append(f"{param.title} {text} is left out: {error}.")
            continue
        members.append(Member(value, text, value == current, sides))
    return Family(param, axis, inverted, tuple(members), tuple(refused))
