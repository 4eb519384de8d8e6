"""Where the points stand and which class each has: checked, projected, and written into a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.errors import ParameterError

PLANE, CIRCLE = "plane", "circle"
SPACES = (PLANE, CIRCLE)
LEAST, MOST = 3, 8
CLASSES = 8
REACH = 2.0  # of the plane, each way
NAMES = "ABCDEFGH"
DIGITS = 3  # in a link


@dataclass(frozen=True)
class Placement:
    """Points (x, y) and the class of each, counted from 0."""

    points: tuple[tuple[float, float], ...]
    classes: tuple[int, ...]

    def tensors(self) -> tuple[Tensor, Tensor]:
        """Embeddings (N, 2) in double precision, and labels (N,)."""
        return torch.tensor(self.points, dtype=torch.float64), torch.tensor(self.classes)

    def moved(self, index: int, point: tuple[float, float]) -> Placement:
        """The same with one point elsewhere."""
        points = (*self.points[:index], point, *self.points[index + 1 :])
        return Placement(points, self.classes)

    def to_text(self) -> str:
        """As a link spells it: x~y~class joined by "_", classes counted from 1."""
        return "_".join(
            f"{tidy(x)}~{tidy(y)}~{c + 1}" for (x, y), c in zip(self.points, self.classes, strict=True)
        )


def tidy(value: float) -> str:
    """A coordinate with three decimals and no more digits than it needs."""
    return f"{round(value, DIGITS) + 0.0:.{DIGITS}f}".rstrip("0").rstrip(".")


def on_circle(placement: Placement) -> Placement:
    """Every point moved along its ray to the unit circle; one at the centre goes to the right end."""
    return Placement(tuple(map(to_unit, placement.points)), placement.classes)


def to_unit(point: tuple[float, float]) -> tuple[float, float]:
    """The point's direction."""
    size = math.hypot(*point)
    return (point[0] / size, point[1] / size) if size > 1e-12 else (1.0, 0.0)


def settled(placement: Placement, space: str) -> Placement:
    """The placement inside its space: on the circle, or within reach on the plane."""
    if space == CIRCLE:
        return on_circle(placement)
    inside = tuple((max(-REACH, min(REACH, x)), max(-REACH, min(REACH, y))) for x, y in placement.points)
    return Placement(inside, placement.classes)


def checked(rows: Any, space: str = PLANE) -> Placement:
    """A placement from rows [x, y, class], class counted from 0. Raises ParameterError for anything else."""
    if not isinstance(rows, list) or not LEAST <= len(rows) <= MOST:
        raise ParameterError(f"points: expected a list of {LEAST} to {MOST} points")
    for name, row in zip(NAMES, rows, strict=False):
        if not is_row(row):
            raise ParameterError(
                f"point {name}: expected [x, y, class], coordinates from {-REACH:g} to {REACH:g} and a class "
                f"from 0 to {CLASSES - 1}"
            )
    return settled(
        Placement(tuple((float(x), float(y)) for x, y, _ in rows), tuple(c for *_, c in rows)), space
    )


def is_row(row: Any) -> bool:
    """Whether it is two coordinates within reach and a class."""
    if not isinstance(row, list) or len(row) != 3 or any(isinstance(part, bool) for part in row):
        return False
    x, y, number = row
    within = all(isinstance(value, int | float) and abs(value) <= REACH + 1e-9 for value in (x, y))
    return within and isinstance(number, int) and 0 <= number < CLASSES


def read_text(text: str) -> tuple[Placement | None, tuple[str, ...]]:
    """The placement of a link and a sentence for each part that was refused.

    None where fewer than three points remain.
    """
    refusals: list[str] = []
    rows: list[Sequence[Any]] = []
    parts = text.split("_")
    for number, part in enumerate(parts[:MOST], 1):
        row = read_part(part)
        if row is None:
            refusals.append(
                f"point {number} reads {part[:24]!r}; expected x~y~class, coordinates from {-REACH:g} to "
                f"{REACH:g} and a class from 1 to {CLASSES}; it is left out"
            )
        else:
            rows.append(row)
    if len(parts) > MOST:
        refusals.append(f"there are {len(parts)} points; the first {MOST} are kept")
    if len(rows) < LEAST:
        return None, (*refusals, f"fewer than {LEAST} points remain, so the triplet is shown")
    return checked(rows), tuple(refusals)


def read_part(part: str) -> list[Any] | None:
    """One point [x, y, class from 0], or None."""
    texts = part.split("~")
    try:
        row = [float(texts[0]), float(texts[1]), int(texts[2]) - 1] if len(texts) == 3 else None
    except ValueError:
        return None
    return row if is_row(row) else None
