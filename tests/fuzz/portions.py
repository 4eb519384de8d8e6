"""A long run cut into portions, which processes can share."""

from __future__ import annotations

from typing import NamedTuple

from tests.fuzz.holds import properties, run

PORTION = 5000  # inputs: what hypothesis remembers of a run slows it, so it begins anew


class Portion(NamedTuple):
    """Inputs of one property."""

    name: str
    inputs: int
    seed: int


def portions(names: list[str], inputs: int, start: int) -> list[Portion]:
    """The run in portions with seeds of their own, the properties in turn."""
    total = sum(properties()[name].weight for name in names)
    left = {name: max(1, round(inputs * properties()[name].weight / total)) for name in names}
    found: list[Portion] = []
    while any(left.values()):
        for name in names:
            if left[name]:
                count = min(PORTION, left[name])
                found.append(Portion(name, count, start + len(found)))
                left[name] -= count
    return found


def of(portion: Portion) -> tuple[Portion, str | None, int]:
    """The portion, its counterexample or None, and the inputs tried."""
    return portion, *run(properties()[portion.name], portion.inputs, portion.seed)
