"""Each miner again, as plain loops over a float64 matrix, written from its definition."""

import math
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

Pairs = list[tuple[int, int]]
Triplets = list[tuple[int, int, int]]


def pairs_of(labels: Tensor, ref_labels: Tensor | None) -> tuple[Pairs, Pairs]:
    y = labels.tolist()
    r = y if ref_labels is None else ref_labels.tolist()
    every = [(i, j) for i in range(len(y)) for j in range(len(r))]
    positive = [(i, j) for i, j in every if y[i] == r[j] and not (ref_labels is None and i == j)]
    return positive, [(i, j) for i, j in every if y[i] != r[j]]


def triplets_of(positive: Pairs, negative: Pairs) -> Triplets:
    return [(a, p, n) for a, p in positive for b, n in negative if a == b]


def of(pairs: Pairs, anchor: int) -> list[int]:
    return [other for a, other in pairs if a == anchor]


def triplet_margin(
    d: list[list[float]], positive: Pairs, negative: Pairs, margin: float, kind: str
) -> Triplets:
    wanted: dict[str, Callable[[float], bool]] = {
        "all": lambda g: g <= margin,
        "hard": lambda g: g <= margin and g <= 0,
        "semihard": lambda g: 0 < g <= margin,
        "easy": lambda g: g > margin,
    }
    return [(a, p, n) for a, p, n in triplets_of(positive, negative) if wanted[kind](d[a][n] - d[a][p])]


def multi_similarity(
    d: list[list[float]], positive: Pairs, negative: Pairs, epsilon: float
) -> tuple[Pairs, Pairs]:
    near, far = [], []
    for a in range(len(d)):
        p, n = of(positive, a), of(negative, a)
        if not p or not n:
            continue
        near += [(a, j) for j in p if d[a][j] + epsilon > min(d[a][k] for k in n)]
        far += [(a, k) for k in n if d[a][k] - epsilon < max(d[a][j] for j in p)]
    return near, far


def hardest_share(
    d: list[list[float]], positive: Pairs, negative: Pairs, share: float
) -> tuple[Pairs, Pairs]:
    near = sorted(positive, key=lambda ij: -d[ij[0]][ij[1]])[: math.ceil(share * len(positive))]
    far = sorted(negative, key=lambda ij: d[ij[0]][ij[1]])[: math.ceil(share * len(negative))]
    return near, far


def easy_hard(
    d: list[list[float]], positive: Pairs, negative: Pairs, pos: str, neg: str
) -> tuple[Pairs, Pairs]:
    """One pair of each side for each anchor; `d` is a distance, a similarity negated."""
    near, far = [], []
    for a in range(len(d)):
        p, n = of(positive, a), of(negative, a)

        def key(j: int, row: list[float] = d[a]) -> float:
            return row[j]

        if pos == "semihard" and n:
            limit = d[a][max(n, key=key) if neg == "easy" else min(n, key=key)]
            p = [j for j in p if d[a][j] < limit]
        chosen_p = None if not p else min(p, key=key) if pos == "easy" else max(p, key=key)
        if neg == "semihard" and chosen_p is not None:
            n = [k for k in n if d[a][k] > d[a][chosen_p]]
        chosen_n = None if not n else max(n, key=key) if neg == "easy" else min(n, key=key)
        if pos == "all":
            near += [(a, j) for j in p]
        elif chosen_p is not None and (neg == "all" or chosen_n is not None):
            near.append((a, chosen_p))
        if neg == "all":
            far += [(a, k) for k in n]
        elif chosen_n is not None and (pos == "all" or chosen_p is not None):
            far.append((a, chosen_n))
    return near, far


def angular(x: Tensor, r: Tensor, positive: Pairs, negative: Pairs, degrees: float) -> Triplets:
    def angle(a: int, p: int, n: int) -> float:
        width, height = float((x[a] - r[p]).norm()), float((r[n] - (x[a] + r[p]) / 2).norm())
        return math.degrees(math.atan2(width, 2 * height))

    return [(a, p, n) for a, p, n in triplets_of(positive, negative) if angle(a, p, n) > degrees]


def listed(indices: Any) -> Any:
    """Sorted tuples of a mined result: triplets, or (positive pairs, negative pairs)."""

    def zipped(parts: Iterable[Tensor]) -> list[tuple[int, ...]]:
        return sorted(zip(*(part.tolist() for part in parts), strict=True))

    return zipped(indices) if len(indices) == 3 else (zipped(indices[:2]), zipped(indices[2:]))
