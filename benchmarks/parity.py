"""The same batch through losslib, a brute-force loop in float64 and pytorch-metric-learning.

    python -m benchmarks.parity [LOSS ...] [--seed 0] [--json out.json]

Default options, 64 rows of 128 numbers in 8 classes, float64. Where a value differs the convention that
differs is named. The brute-force loops are those of the tests; pytorch-metric-learning is optional. Status 1
when losslib and a loop differ.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

from lab.parity import AGREE, batch, has_peer, parity
from losslib import catalog
from losslib.errors import ParameterError
from tests.oracles import oracles


def main(arguments: list[str] | None = None) -> int:
    """Prints the table; status 1 when losslib and the loop differ, 2 for an unknown loss."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("losses", nargs="*", metavar="LOSS", help="class names; all when none is given")
    parser.add_argument("--seed", type=int, default=0, help="of the batch")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args(arguments)
    try:
        rows = [row(name, given.seed) for name in given.losses or catalog.losses()]
    except ParameterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(rows))
    if not has_peer():
        print("\npytorch-metric-learning is not installed: pip install pytorch-metric-learning")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1).replace("NaN", "null"), encoding="utf-8")
    return int(any(one["loop differs by"] > AGREE for one in rows))


def row(name: str, seed: int) -> dict[str, Any]:
    """One loss; NaN where a value is missing."""
    found = parity(name, seed)
    loop = by_loop(name, seed) if not math.isnan(found.ours) else math.nan
    apart = abs(found.ours - loop) / max(abs(found.ours), abs(loop), 1e-12)
    return {
        "loss": name,
        "losslib": found.ours,
        "loop": loop,
        "loop differs by": apart,
        "pytorch-metric-learning": found.theirs,
        "differs by": found.difference,
        "convention": "" if found.agrees else found.said,
    }


def by_loop(name: str, seed: int) -> float:
    """The oracle's value; NaN where it computes from something else than embeddings and labels."""
    embeddings, labels = batch(seed)
    try:
        return float(oracles()[name].value(embeddings, labels))
    except (KeyError, TypeError, ValueError):
        return math.nan


def table(rows: list[dict[str, Any]]) -> str:
    """The rows in Markdown."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for one in rows:
        cells = [f"{v:.7g}" if isinstance(v, float) else str(v) for v in one.values()]
        lines.append("| " + " | ".join("" if cell == "nan" else cell for cell in cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
