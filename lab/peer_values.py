"""What pytorch-metric-learning gave on the batch of `lab.parity`, so that pages can say how far it is off.

python -m lab.peer_values --make    writes the values again; needs pytorch-metric-learning
python -m lab.peer_values --check   status 1 where it gives other ones
"""

from __future__ import annotations

import argparse
import math
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lab.percent import percent

FILE = Path(__file__).with_suffix(".toml")
ROWS, CLASSES, SIZE = 64, 8, 128  # of the batch
BATCH = f"{ROWS} embeddings of {SIZE} numbers in {CLASSES} classes, default options, double precision"
SAME = 1e-6  # relative difference up to which two values count as the same
CLOSE = 1e-3  # to which a value is measured again elsewhere


class Pair(NamedTuple):
    """The values of one loss on one batch, with default options, in double precision."""

    ours: float
    theirs: float

    @property
    def difference(self) -> float:
        """By how much they differ, relative to the larger."""
        return abs(self.ours - self.theirs) / max(abs(self.ours), abs(self.theirs), 1e-12)


class Compared(NamedTuple):
    """The values on the batch as it is, and on the same embeddings divided by their lengths."""

    plain: Pair
    unit: Pair


@cache
def recorded() -> tuple[str, dict[str, Compared]]:
    """The peer's version, and the values by class name of the loss."""
    if not FILE.exists():  # while it is made
        return "", {}
    found = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return found["peer"], {
        name: Compared(Pair(*values[:2]), Pair(*values[2:])) for name, values in found["values"].items()
    }


def sentence(name: str) -> str:
    """By how much the two libraries differ with a loss, "" where they were not compared."""
    version, values = recorded()
    if name not in values:
        return ""
    plain, unit = values[name]
    said = f"On a fixed batch ({BATCH}) {in_words(plain, version)}"
    if (plain.difference <= SAME) == (unit.difference <= SAME):
        return f"{said}."
    return f"{said}; of the same embeddings at length 1 {in_words(unit, version)}."


def in_words(pair: Pair, version: str) -> str:
    """Both values, and by how much they differ."""
    if pair.difference <= SAME:
        return f"{version} gives the same value to a millionth, {pair.ours:.4g}"
    large = pair.difference >= 0.01
    digits, of = (4, percent(pair.difference, 0)) if large else (8, f"{pair.difference:.1e}")
    return (
        f"losslib gives {pair.ours:.{digits}g} and {version} {pair.theirs:.{digits}g}, a relative difference "
        f"of {of}"
    )


def measured() -> tuple[str, dict[str, Compared]]:
    """The same as `recorded`, from the library that is installed here."""
    from importlib.metadata import version

    from lab.parity import parity
    from losslib import catalog

    values = {}
    for name in catalog.losses():
        plain, unit = (parity(name, unit=at_length_1) for at_length_1 in (False, True))
        if not math.isnan(plain.theirs):
            values[name] = Compared(Pair(plain.ours, plain.theirs), Pair(unit.ours, unit.theirs))
    return f"pytorch-metric-learning {version('pytorch-metric-learning')}", values


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the file; status 1 where it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m lab.peer_values", description=__doc__)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--make", action="store_true", help="measure, and write the file")
    which.add_argument("--check", action="store_true", help="measure, and compare with the file")
    given = parser.parse_args(arguments)
    if given.make:
        write()
        return 0
    values = measured()[1]
    old = recorded()[1]
    wrong = sorted(set(old) ^ set(values))
    wrong += [name for name in values if name in old and not alike(old[name], values[name])]
    print(
        "\n".join(f"{name}: {old.get(name)} is now {values.get(name)}" for name in wrong) or "all as recorded"
    )
    return int(bool(wrong))


def write() -> None:
    """Measures, and writes the file."""
    FILE.unlink(missing_ok=True)
    recorded.cache_clear()
    version, values = measured()
    lines = [
        f"{name} = [{', '.join(f'{value:.10g}' for pair in both for value in pair)}]"
        for name, both in values.items()
    ]
    head = (
        "# Made by python -m lab.peer_values --make: losslib's value and the peer's, then both at length 1."
    )
    FILE.write_text("\n".join([head, f'peer = "{version}"', "", "[values]", *lines, ""]), encoding="utf-8")
    recorded.cache_clear()


def alike(old: Compared, new: Compared) -> bool:
    """Whether two measurements say the same."""
    before, now = (*old.plain, *old.unit), (*new.plain, *new.unit)
    return all(math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-9) for a, b in zip(before, now, strict=True))


if __name__ == "__main__":
    sys.exit(main())
