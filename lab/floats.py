"""The broken numbers of nested lists and dicts, taken out as one array: as text they are twice as large."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def taken_out(value: Any) -> tuple[Any, NDArray[np.uint8]]:
    """The value with {} in place of each float, and the floats, equal bytes of all of them together.

    Numbers of the same kind, those at places that differ only by indices of lists, follow each other.

    Args:
        value: of dicts, lists, tuples and what JSON knows; no empty dict.
    """
    kinds: dict[str, list[float]] = {}

    def walk(part: Any, kind: str) -> Any:
        if isinstance(part, float):
            kinds.setdefault(kind, []).append(part)
            return {}
        if isinstance(part, dict):
            return {key: walk(item, f"{kind}.{key}") for key, item in part.items()}
        if isinstance(part, list | tuple):
            short = len(part) < 8  # the members of a row differ in kind, the rows of a table do not
            return [walk(item, f"{kind}.{place if short else ''}") for place, item in enumerate(part)]
        return part

    rest = walk(value, "")
    floats = np.array([number for one in kinds.values() for number in one], dtype="<f8")
    return rest, np.ascontiguousarray(floats.view(np.uint8).reshape(-1, 8).T)


def put_back(rest: Any, planes: NDArray[np.uint8]) -> Any:
    """The value that `taken_out` was given. Raises ValueError where they do not belong together."""
    floats = np.ascontiguousarray(planes.T).view("<f8").ravel().tolist()
    counts: dict[str, int] = {}

    def walk(part: Any, kind: str, put: Any) -> Any:
        if isinstance(part, dict):
            if not part:
                return put(kind)
            return {key: walk(item, f"{kind}.{key}", put) for key, item in part.items()}
        if isinstance(part, list):
            short = len(part) < 8
            return [walk(item, f"{kind}.{place if short else ''}", put) for place, item in enumerate(part)]
        return part

    def count(kind: str) -> None:
        counts[kind] = counts.get(kind, 0) + 1

    walk(rest, "", count)
    if sum(counts.values()) != len(floats):
        raise ValueError("floats are missing, or too many")
    next_of, first = {}, 0
    for kind, number in counts.items():
        next_of[kind], first = first, first + number

    def put(kind: str) -> float:
        next_of[kind] += 1
        return float(floats[next_of[kind] - 1])

    return walk(rest, "", put)
