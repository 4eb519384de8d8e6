"""Domains: the sets of values that declared parameters accept. No torch here.

A domain knows what belongs to it, says so in words, reads a value from text and gives examples
inside (its ends among them) and just outside. From one domain come the check, its message, the
control of a page and the contract test that feeds a bad value.
"""

# ruff: noqa: D102  (the base class says what each method of a domain does)
from __future__ import annotations

import math
import re
from numbers import Integral, Real
from typing import Any, ClassVar


class Domain:
    """A set of values. Subclasses set `kind` and implement `contains`, `describe` and the examples."""

    kind: str = "any"

    def contains(self, value: Any) -> bool:
        """Whether the value belongs to the domain."""
        raise NotImplementedError

    def describe(self) -> str:
        """The domain in words, as it reads after "must be"."""
        raise NotImplementedError

    def convert(self, value: Any) -> Any:
        """The value in the domain's own type; only called on values that belong."""
        return value

    def parse(self, text: str) -> Any:
        """The value that the text stands for, whether it belongs or not. Raises ValueError."""
        raise NotImplementedError

    def format(self, value: Any) -> str:
        """Text that `parse` reads back as the same value."""
        return str(value)

    def examples_in(self) -> tuple[Any, ...]:
        """Values that belong: the closed ends, near the open ones, and something between."""
        raise NotImplementedError

    def examples_out(self) -> tuple[Any, ...]:
        """Values that do not belong: just outside the ends, NaN, wrong types."""
        raise NotImplementedError


class Interval(Domain):
    """Finite real numbers between two ends; either end may be infinite, and is then never reached."""

    kind = "float"

    def __init__(self, lo: float = -math.inf, hi: float = math.inf, closed: str = "both") -> None:
        if closed not in ("both", "left", "right", "neither"):
            raise ValueError(f"closed must be both, left, right or neither, got {closed!r}")
        self.lo, self.hi, self.closed = float(lo), float(hi), closed

    def contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        if not math.isfinite(number):
            return False
        above = number >= self.lo if self.closed in ("both", "left") else number > self.lo
        below = number <= self.hi if self.closed in ("both", "right") else number < self.hi
        return above and below

    def describe(self) -> str:
        lo = f"{'>=' if self.closed in ('both', 'left') else '>'} {self.lo:g}"
        hi = f"{'<=' if self.closed in ('both', 'right') else '<'} {self.hi:g}"
        ends = [end for end, limit in ((lo, self.lo), (hi, self.hi)) if math.isfinite(limit)]
        return "a number " + " and ".join(ends) if ends else "a finite number"

    def convert(self, value: Any) -> float:
        return float(value)

    def parse(self, text: str) -> float:
        return float(text)

    def format(self, value: Any) -> str:
        short = f"{value:g}"
        return short if float(short) == value else repr(float(value))

    def examples_in(self) -> tuple[Any, ...]:
        lo = self.lo if math.isfinite(self.lo) else min(-1.0, self.hi - 1.0)
        hi = self.hi if math.isfinite(self.hi) else max(1.0, self.lo + 100.0)
        width = hi - lo
        found = [lo, hi, lo + width / 1000, hi - width / 1000, lo + width / 2]
        return tuple(value for value in found if self.contains(value))

    def examples_out(self) -> tuple[Any, ...]:
        outside: list[Any] = []
        for end, away, closed in ((self.lo, -math.inf, "left"), (self.hi, math.inf, "right")):
            if math.isfinite(end):
                outside.append(math.nextafter(end, away) if self.closed in ("both", closed) else end)
        return (*outside, math.nan, math.inf, -math.inf, "text", True, None)


class Integer(Domain):
    """Whole numbers from `lo` to `hi`, both included; None means no end."""

    kind = "int"

    def __init__(self, lo: int | None = None, hi: int | None = None) -> None:
        self.lo, self.hi = lo, hi

    def contains(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, Integral):
            return False
        number = int(value)
        return (self.lo is None or number >= self.lo) and (self.hi is None or number <= self.hi)

    def describe(self) -> str:
        if self.lo is not None and self.hi is not None:
            return f"a whole number from {self.lo} to {self.hi}"
        if self.lo is not None:
            return f"a whole number >= {self.lo}"
        return "a whole number" if self.hi is None else f"a whole number <= {self.hi}"

    def convert(self, value: Any) -> int:
        return int(value)

    def parse(self, text: str) -> int:
        return int(text)

    def examples_in(self) -> tuple[Any, ...]:
        lo = self.lo if self.lo is not None else (self.hi - 2 if self.hi is not None else 0)
        hi = self.hi if self.hi is not None else lo + 2
        return tuple(dict.fromkeys(v for v in (lo, lo + 1, hi) if self.contains(v)))

    def examples_out(self) -> tuple[Any, ...]:
        ends = [self.lo - 1] if self.lo is not None else []
        ends += [self.hi + 1] if self.hi is not None else []
        return (*ends, 1.5, math.nan, "text", True, None)


class Boolean(Domain):
    """True or False, nothing that merely looks like it."""

    kind = "bool"
    _words: ClassVar[dict[str, bool]] = {
        **dict.fromkeys(("true", "1", "yes", "on"), True),
        **dict.fromkeys(("false", "0", "no", "off"), False),
    }

    def contains(self, value: Any) -> bool:
        return isinstance(value, bool)

    def describe(self) -> str:
        return "True or False"

    def parse(self, text: str) -> bool:
        word = text.strip().lower()
        return self._words[word] if word in self._words else _refuse(text)

    def format(self, value: Any) -> str:
        return "true" if value else "false"

    def examples_in(self) -> tuple[Any, ...]:
        return (True, False)

    def examples_out(self) -> tuple[Any, ...]:
        return (1, 0.0, "true", None)


class Choice(Domain):
    """One of the listed values."""

    kind = "choice"

    def __init__(self, *values: Any) -> None:
        self.values = values

    def contains(self, value: Any) -> bool:
        return any(type(value) is type(known) and value == known for known in self.values)

    def describe(self) -> str:
        return " or ".join(repr(value) for value in self.values)

    def parse(self, text: str) -> Any:
        return next((value for value in self.values if str(value) == text), text)

    def examples_in(self) -> tuple[Any, ...]:
        return self.values

    def examples_out(self) -> tuple[Any, ...]:
        return ("no such choice", math.nan, None) if None not in self.values else ("no such choice", math.nan)


class Text(Domain):
    """Texts that a regular expression matches whole; `said` is the rule in words."""

    kind = "text"

    def __init__(self, pattern: str, said: str, examples: tuple[str, ...]) -> None:
        self.pattern, self.said, self.examples = re.compile(pattern), said, examples

    def contains(self, value: Any) -> bool:
        return isinstance(value, str) and self.pattern.fullmatch(value) is not None

    def describe(self) -> str:
        return self.said

    def parse(self, text: str) -> str:
        return text

    def examples_in(self) -> tuple[Any, ...]:
        return self.examples

    def examples_out(self) -> tuple[Any, ...]:
        return (None, 1, "\n", math.nan)


class Either(Domain):
    """Any of several domains, tried in order."""

    kind = "either"

    def __init__(self, *domains: Domain) -> None:
        self.domains = domains

    def _home(self, value: Any) -> Domain:
        return next((domain for domain in self.domains if domain.contains(value)), self.domains[0])

    def contains(self, value: Any) -> bool:
        return any(domain.contains(value) for domain in self.domains)

    def describe(self) -> str:
        return " or ".join(domain.describe() for domain in self.domains)

    def convert(self, value: Any) -> Any:
        return self._home(value).convert(value)

    def parse(self, text: str) -> Any:
        for domain in self.domains:
            try:
                value = domain.parse(text)
            except ValueError:
                continue
            if domain.contains(value):
                return value
        return _refuse(text)

    def format(self, value: Any) -> str:
        return self._home(value).format(value)

    def examples_in(self) -> tuple[Any, ...]:
        return tuple(value for domain in self.domains for value in domain.examples_in())

    def examples_out(self) -> tuple[Any, ...]:
        found = [value for domain in self.domains for value in domain.examples_out()]
        return tuple(value for value in found if not self.contains(value))


class Optional(Either):
    """A domain, or None (spelt "none" in text)."""

    kind = "optional"

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain, Choice(None))
        self.inner = domain

    def parse(self, text: str) -> Any:
        return None if text.strip().lower() == "none" else self.inner.parse(text)

    def format(self, value: Any) -> str:
        return "none" if value is None else self.inner.format(value)


def _refuse(text: str) -> Any:
    raise ValueError(f"cannot read {text!r}")


finite = Interval(-math.inf, math.inf, closed="neither")
positive = Interval(0.0, math.inf, closed="neither")
non_negative = Interval(0.0, math.inf, closed="left")
boolean = Boolean()
