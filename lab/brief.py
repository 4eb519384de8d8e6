"""Labels that people give, short enough for a legend or a sentence, each still unlike the others."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache

MOST = 24
GAP = "…"


def brief(names: Iterable[str], most: int = MOST) -> tuple[str, ...]:
    """The names in their order, those of more than `most` characters with an ellipsis for their middle.

    The ends tell a name more surely than its middle; names whose ends are alike are numbered.
    """
    return _brief(tuple(names), most)


@lru_cache(maxsize=64)
def _brief(names: tuple[str, ...], most: int) -> tuple[str, ...]:
    cuts = [_cut(name, most) for name in names]
    counts, taken = Counter(cuts), set(cuts)
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    shown = []
    for name, cut in zip(names, cuts, strict=True):
        one = cut
        while cut != name and counts[cut] > 1 and one in taken:
            one = _cut(name, most, f" ({next(numbers[cut])})")
        taken.add(one)
        shown.append(one)
    return tuple(shown)


def _cut(name: str, most: int, mark: str = "") -> str:
    if len(name) <= most:
        return name
    kept = most - len(GAP) - len(mark)
    return f"{name[: kept - kept // 2].rstrip()}{GAP}{name[len(name) - kept // 2 :].lstrip()}{mark}"
