"""What a lesson asks before it runs: a choice, a number, or a sketch of a histogram; and what it got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from losslib.errors import ParameterError

CHOICE, NUMBER, SKETCH = "choice", "number", "sketch"
Prediction = int | float | tuple[float, ...]


@dataclass(frozen=True)
class Choice:
    """One possible answer: right when the measure lies in [low, high).

    Args:
        text: the answer.
        low: where it begins to be right.
        high: where it ends to be right.
    """

    text: str
    low: float
    high: float


@dataclass(frozen=True)
class Question:
    """What is asked.

    Args:
        kind: "choice", "number" or "sketch".
        text: the question.
        why: why the answer is what it is, without numbers; shown with the mark.
        choices: of a choice; their ranges are side by side, so that exactly one is right.
        low: smallest number; of a sketch, where the axis begins.
        high: largest number; of a sketch, where the axis ends.
        step: of a number.
        tolerance: by how much a number may be off and still be right.
        unit: of a number, such as "%".
        bins: of a sketch, how many bars of equal width.
        side: of a sketch, the pairs that are drawn: "positive" or "negative".
        overlap: of a sketch, the share of the histogram it must cover to be right.
        run: of a sketch, which run's histogram it is held against.
    """

    kind: str
    text: str
    why: str
    choices: tuple[Choice, ...] = ()
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    tolerance: float = 0.0
    unit: str = ""
    bins: int = 5
    side: str = "negative"
    overlap: float = 0.7
    run: str = "a"

    def edges(self) -> list[float]:
        """Ends of a sketch's bars, bins + 1 numbers."""
        width = (self.high - self.low) / self.bins
        return [self.low + width * place for place in range(self.bins + 1)]

    def check(self, prediction: Any) -> Prediction:
        """The prediction, if it is one. Raises ParameterError."""
        if self.kind == CHOICE:
            if isinstance(prediction, bool) or not isinstance(prediction, int):
                raise ParameterError(f"prediction: expected the number of a choice, got {prediction!r}")
            if not 0 <= prediction < len(self.choices):
                raise ParameterError(
                    f"prediction: choices are 0 to {len(self.choices) - 1}, got {prediction}"
                )
            return prediction
        if self.kind == NUMBER:
            number = _number(prediction)
            if not self.low <= number <= self.high:
                raise ParameterError(f"prediction: expected {self.low:g} to {self.high:g}, got {number:g}")
            return number
        return self._check_sketch(prediction)

    def _check_sketch(self, prediction: Any) -> tuple[float, ...]:
        if not isinstance(prediction, Sequence) or isinstance(prediction, str):
            raise ParameterError(f"prediction: expected {self.bins} bars, got {prediction!r}")
        bars = tuple(map(_number, prediction))
        if len(bars) != self.bins:
            raise ParameterError(f"prediction: expected {self.bins} bars, got {len(bars)}")
        if min(bars) < 0 or not sum(bars) > 0:
            raise ParameterError("prediction: bars must be at least 0, and one of them above 0")
        return bars


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise ParameterError(f"prediction: expected a number, got {value!r}")
    return float(value)


def read_question(plain: Mapping[str, Any]) -> Question:
    """The question of a lesson's file. Raises ParameterError where its choices leave a gap or overlap."""
    values = dict(plain)
    choices = tuple(
        Choice(one["text"], float(one.get("from", "-inf")), float(one.get("to", "inf")))
        for one in values.pop("choices", ())
    )
    if values["kind"] == CHOICE:
        ranges = sorted((choice.low, choice.high) for choice in choices)
        ends = [float("-inf"), *(high for _, high in ranges)]
        if [low for low, _ in ranges] != ends[:-1] or ends[-1] != float("inf"):
            raise ParameterError(
                f"the ranges of the choices must be side by side from -inf to inf, got {ranges}"
            )
    return Question(choices=choices, **values)
