"""The figures of a lesson, their targets, and whether they were met."""

from __future__ import annotations

import math
from typing import NamedTuple

QUIET = 0.15  # cores that other programs may take without figures of time being a mere floor


class Figure(NamedTuple):
    """A figure's unit, and its target: at least, at most, or none."""

    unit: str = ""
    least: float | None = None
    most: float | None = None

    @property
    def target(self) -> str:
        """In a table."""
        if self.least is not None:
            return f">= {self.least:g}"
        return "" if self.most is None else f"<= {self.most:g}"

    def met(self, value: float) -> bool | None:
        """Whether a value meets the target, None where there is none; what was not measured does not."""
        if self.least is None and self.most is None:
            return None
        least, most = self.least, self.most
        return (least is None or value >= least) and (most is None or value <= most)


FIGURES = {
    "slowest student's steps a second beside the median": Figure(least=0.5),
    "steps a second, median": Figure("1/s"),
    "frames a second while training, median": Figure("1/s", least=1),
    "frames a second while training, slowest student": Figure("1/s", least=1),
    "a control's answer at the server, median": Figure("ms"),
    "a control's answer at the server, p95": Figure("ms", most=300),
    "a control of another page, p95": Figure("ms"),
    "a page, p95": Figure("ms"),
    "a drag on the playground, p95": Figure("ms", most=100),
    "click to text in Chromium, p95": Figure("ms", most=1000),
    "memory of all processes, peak": Figure("MB", most=800),
    "memory of the server's own process, peak": Figure("MB"),
    "memory, growth after the first third": Figure("MB", most=40),
    "runs left after all closed": Figure(most=0),
    "threads left after all closed, pools aside": Figure(most=0),
    "threads of pools after all closed": Figure(),
    "sessions": Figure(),
    "controls answered": Figure(),
    "errors shown": Figure(most=0),
    "students without an answer": Figure(most=0),
    "server": Figure("cores"),
    "students": Figure("cores"),
    "Chromium": Figure("cores"),
    "other programs": Figure("cores"),
}


def table(found: dict[str, float]) -> str:
    """The figures as a Markdown table."""
    lines = ["| | target | measured | met |", "|---|---|---|---|"]
    for name, figure in FIGURES.items():
        if name in found:
            value = found[name]
            unit = f" ({figure.unit})" if figure.unit else ""
            said = {True: "yes", False: "no", None: ""}[figure.met(value)]
            digits = 0 if abs(value) >= 100 or float(value).is_integer() else 2
            lines.append(f"| {name}{unit} | {figure.target} | {value:.{digits}f} | {said} |")
    return "\n".join(lines)


def missed(found: dict[str, float]) -> list[str]:
    """The figures that do not meet their target."""
    return [name for name, figure in FIGURES.items() if name in found and figure.met(found[name]) is False]


def verdict(found: dict[str, float]) -> str:
    """How many targets were met, which were not, and whether the machine was quiet enough to tell."""
    wrong = missed(found)
    judged = sum(figure.met(found[name]) is not None for name, figure in FIGURES.items() if name in found)
    told = f"{judged - len(wrong)} of {judged} targets met"
    told += f"; missed: {'; '.join(wrong)}." if wrong else "."
    others = found.get("other programs", math.nan)
    if others > QUIET:
        told += f" Other programs took {others:.2f} cores meanwhile: on a quiet machine it is faster."
    return told
