"""Settings of a sweep in order of held-out quality, with the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from lab.sweep.plan import Cell
from lab.sweep.results import CellResult


class Spread(NamedTuple):
    """Mean, least and largest over seeds; NaN without any."""

    mean: float
    low: float
    high: float


class Ranked(NamedTuple):
    """One setting of a sweep.

    Args:
        label: the varied settings in words.
        varied: the same as (name, text).
        cells: its runs so far, one a seed.
        recall: recall@1 over the seeds that did not diverge or fail.
        map_at_r: MAP@R over the same.
        lost: how many seeds diverged or failed.
        collapsed: how many collapsed; these count with their numbers.
    """

    label: str
    varied: tuple[tuple[str, str], ...]
    cells: tuple[tuple[Cell, CellResult], ...]
    recall: Spread
    map_at_r: Spread
    lost: int
    collapsed: int


def ranking(done: Iterable[tuple[Cell, CellResult]], step: int | None = None) -> list[Ranked]:
    """Settings, best first: fewest lost seeds, then mean recall@1, then mean MAP@R.

    A run that diverged has no encoder to measure, so it enters no mean; a setting that loses a seed stands
    behind those that lose fewer, whatever the others reach.

    Args:
        done: cells with their results, in the order of the plan.
        step: at which the numbers are read; the end by default.
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Cell, CellResult]]] = {}
    for cell, result in done:
        groups.setdefault(cell.varied, []).append((cell, result))
    ranked = [_ranked(varied, members, step) for varied, members in groups.items()]
    return sorted(ranked, key=lambda one: (one.lost, -_known(one.recall.mean), -_known(one.map_at_r.mean)))


def spread(values: Iterable[float]) -> Spread:
    """Mean, least and largest of the finite values."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return Spread(math.nan, math.nan, math.nan)
    return Spread(math.fsum(known) / len(known), min(known), max(known))


def _ranked(
    varied: tuple[tuple[str, str], ...], members: list[tuple[Cell, CellResult]], step: int | None
) -> Ranked:
    sound = [result for _, result in members if not result.lost]
    return Ranked(
        label=members[0][0].label,
        varied=varied,
        cells=tuple(members),
        recall=spread(result.value("recall_at_1", step) for result in sound),
        map_at_r=spread(result.value("map_at_r", step) for result in sound),
        lost=len(members) - len(sound),
        collapsed=sum(result.state == "collapsed" for result in sound),
    )


def _known(value: float) -> float:
    return value if math.isfinite(value) else -1.0
