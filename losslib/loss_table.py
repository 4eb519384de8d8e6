"""The table of all losses as Markdown, from their declarations, and a file that carries it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from losslib import catalog
from losslib.params import Param

START, END = "<!-- losses -->", "<!-- /losses -->"
COLUMNS = (
    "Class",
    "Title",
    "Family",
    "Paper",
    "Distance",
    "Reducer",
    "Options (default; domain)",
    "pytorch-metric-learning",
)


def table() -> str:
    """One row a loss of the library, sorted by family and class."""
    own = [cls for cls in catalog.losses().values() if cls.__module__.startswith("losslib.")]
    rows = [row(cls) for cls in sorted(own, key=lambda cls: (cls.family, cls.__name__))]
    return "\n".join(["| " + " | ".join(line) + " |" for line in (COLUMNS, ["---"] * len(COLUMNS), *rows)])


def row(cls: type[Any]) -> list[str]:
    """The cells of one loss."""
    distance = spelled(cls.default_distance()) if "distance" in cls.parts else ""
    reducer = cls.default_reducer() if "reducer" in cls.parts else None
    cells = (
        f"`{cls.__name__}`",
        cls.title,
        cls.family,
        f"[{cls.paper.authors} ({cls.paper.year})]({cls.paper.url})",
        f"`{distance}`" if distance else "none",
        f"`{spelled(reducer)}`" if reducer is not None else "none",
        "<br>".join([*map(argument, cls.required.values()), *map(option, cls.params.values())]) or "none",
        counterpart(cls),
    )
    return [cell.replace("|", "\\|") for cell in cells]


def spelled(part: Any) -> str:
    """A distance or reducer as it is constructed; options at their defaults are left out."""
    changed = [f"{n}={getattr(part, n)!r}" for n, p in part.params.items() if getattr(part, n) != p.default]
    return f"{type(part).__name__}({', '.join(changed)})"


def argument(param: Param) -> str:
    """An argument that must be given."""
    return f"`{param.name}` (must be given; {param.describe()})"


def option(param: Param) -> str:
    """An option with its default and domain."""
    return f"`{param.name}` ({param.format(param.default)}; {param.describe()})"


def counterpart(cls: type[Any]) -> str:
    """The class there and the options it calls otherwise."""
    if cls.pml is None:
        return "none"
    said = [
        f"`{ours}` is `{theirs}`" if theirs else f"no `{ours}`" for ours, theirs in cls.pml.renamed.items()
    ]
    return f"`{cls.pml.class_name}`" + (f" ({', '.join(said)})" if said else "")


def replaced(text: str) -> str:
    """The text with the block between the marks made anew. Raises ValueError where a mark is missing."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"has no block between {START} and {END}")
    return f"{before}{START}\n{table()}\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or check or rewrite the block of a file; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m losslib.catalog",
        description="Print the table of all losses as Markdown.",
        epilog="exit status: 0 done, 1 the block of the file is stale, 2 the file cannot be used",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--check", type=Path, metavar="FILE", help="say whether the block of this file is stale"
    )
    what.add_argument("--write", type=Path, metavar="FILE", help="make the block of this file anew")
    given = parser.parse_args(arguments)
    file: Path | None = given.check or given.write
    if file is None:
        print(table())
        return 0
    try:
        text = file.read_text(encoding="utf-8")
        fresh = replaced(text)
        if given.write:
            file.write_text(fresh, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"{file}: {error}", file=sys.stderr)
        return 2
    if given.check and fresh != text:
        print(f"{file}: stale; run python -m losslib.catalog --write {file}", file=sys.stderr)
        return 1
    return 0
