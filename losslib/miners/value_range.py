"""A domain of ranges: two numbers in order."""

# ruff: noqa: D102  (the base class says what each method of a domain does)
from __future__ import annotations

import math
from numbers import Real
from typing import Any

from losslib.params import Domain


class ValueRange(Domain):
    """Two numbers (lo, hi) with lo <= hi, as a tuple; either may be infinite. Text: "0.2:1.4"."""

    kind = "range"

    def contains(self, value: Any) -> bool:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return False
        if any(isinstance(end, bool) or not isinstance(end, Real) for end in value):
            return False
        return bool(value[0] <= value[1])  # False for NaN

    def describe(self) -> str:
        return "two numbers (lo, hi) with lo <= hi"

    def convert(self, value: Any) -> tuple[float, float]:
        return (float(value[0]), float(value[1]))

    def parse(self, text: str) -> Any:
        low, high = text.split(":")
        return (float(low), float(high))

    def format(self, value: Any) -> str:
        return f"{float(value[0])!r}:{float(value[1])!r}"

    def examples_in(self) -> tuple[Any, ...]:
        return ((0.0, 1.0), (0.5, 0.5), (-math.inf, math.inf))

    def examples_out(self) -> tuple[Any, ...]:
        return ((1.0, 0.0), (0.0,), (math.nan, 1.0), (0.0, math.nan), "text", 1.0, (True, 2.0), None)
