"""Which pairs of the probe's points the histograms compare: uniform samples of positives and negatives."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


def sample_pairs(
    labels: NDArray[np.int64], positive: bool, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """At most `count` different positive (or negative) pairs, uniform over all there are."""
    total = len(labels)
    _, group, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = np.argsort(group, kind="stable")
    ends = np.cumsum(sizes)
    own = sizes[group[by_class]]
    partners = own - 1 if positive else total - own
    if not partners.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Points stand in order of class. A positive is some places further round the own class, a negative
    # some places beyond its end, round the whole set: every partner is met once, nothing is rejected.
    anchor = rng.choice(total, size=count, p=partners / partners.sum())
    ahead = rng.integers(0, partners[anchor])
    end, size = ends[group[by_class[anchor]]], own[anchor]
    start = end - size
    other = start + (anchor - start + 1 + ahead) % size if positive else (end + ahead) % total
    return _different(by_class[anchor], by_class[other], total)


def sample_pairs_within(
    values: NDArray[np.floating], delta: float, positive: bool, count: int, rng: np.random.Generator
) -> Pairs:
    """As `sample_pairs`, with values (N,) that are at most `delta` apart (or further)."""
    total = len(values)
    order = np.argsort(values, kind="stable")
    ordered = values[order].astype(np.float64)
    start = np.searchsorted(ordered, ordered - delta, "left")
    end = np.searchsorted(ordered, ordered + delta, "right")
    partners = end - start - 1 if positive else total - (end - start)
    if not partners.sum():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Points stand in order of value, so the near ones of each are a run of places around its own.
    anchor = rng.choice(total, size=count, p=partners / partners.sum())
    ahead = rng.integers(0, partners[anchor])
    if positive:
        other = start[anchor] + ahead
        other += other >= anchor
    else:
        other = np.where(ahead < start[anchor], ahead, ahead + (end - start)[anchor])
    return _different(order[anchor], order[other], total)


def sample_view_pairs(total: int, positive: bool, count: int, rng: np.random.Generator) -> Pairs:
    """Pairs of a first view (places 0 to N - 1) and a second one (N to 2 N - 1).

    All N of one sample, or at most `count` of two samples.
    """
    if positive:
        return np.arange(total), total + np.arange(total)
    if total < 2:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    code = np.unique(rng.integers(0, total * (total - 1), count))
    first, ahead = np.divmod(code, total - 1)
    return first, total + ahead + (ahead >= first)


def _different(first: NDArray[np.int64], second: NDArray[np.int64], total: int) -> Pairs:
    """Each pair once, whichever way round it was drawn."""
    code = np.unique(np.minimum(first, second) * total + np.maximum(first, second))
    return code // total, code % total
