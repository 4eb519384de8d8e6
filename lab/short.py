"""A measured number in words: three digits, and as 3.5e-4 where it is very small or large."""

from __future__ import annotations


def short(value: float) -> str:
    """Three significant digits without zeros at the end, as the live view writes them.

    Below 0.001 and from 100,000 on in powers of ten with two digits.
    """
    size = abs(value)
    if 0 < size < 1e-3 or 1e5 <= size < float("inf"):
        digits, power = f"{value:.1e}".split("e")
        return f"{digits}e{int(power)}"
    return f"{float(f'{value:.3g}') + 0.0:g}"
