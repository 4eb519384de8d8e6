"""What a comparison measures: numbers that do not depend on a loss's scale, with their direction."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from lab.recording import Recording


class Measure(NamedTuple):
    """One number of every frame.

    Args:
        name: of the curve.
        title: in the field's words; a term of the glossary in lower case.
        better: "higher", "lower" or "" where neither is.
        reference: what its values are held against.
        share: whether it lies between 0 and 1.
    """

    name: str
    title: str
    better: str
    reference: str
    share: bool = False


MEASURES = (
    Measure("recall_at_1", "recall@1", "higher", "perfect is 1", True),
    Measure("map_at_r", "MAP@R", "higher", "perfect is 1", True),
    Measure("alignment", "alignment", "lower", "0: every class is one point"),
    Measure("uniformity", "uniformity", "lower", "0: collapsed"),
    Measure("active_share", "active share", "", "0: no pair has a gradient", True),
    Measure("spread", "spread", "", "0: collapsed"),
    Measure("effective_rank", "effective rank", "", "1: on a line or a point"),
    Measure("mean_cosine", "mean cosine", "", "1: collapsed"),
)


def value(recording: Recording, name: str, step: int) -> float:
    """The last number of a curve at or before a step; NaN without one."""
    curves = recording.curves()
    known = np.isfinite(curves[name]) & (curves["step"] <= step)
    return float(curves[name][known][-1]) if known.any() else math.nan


def best(values: list[float], better: str) -> int:
    """The place of the one best value; -1 when there is none, or when two are equally good."""
    known = [number for number in values if math.isfinite(number)]
    if not better or len(known) < 2:
        return -1
    winner = max(known) if better == "higher" else min(known)
    return values.index(winner) if values.count(winner) == 1 else -1
