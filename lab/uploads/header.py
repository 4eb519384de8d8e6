"""What the columns of a text table are: names or not, numbers or text, labels or an index."""

from __future__ import annotations

from dataclasses import dataclass

from lab.uploads.text import number, numeric_share

LABEL_WORDS = frozenset((
    "label", "labels", "class", "classes", "class_name", "class_id", "category", "target", "targets", "y",
    "kind", "species", "group", "type",
))  # fmt: skip
INDEX_WORDS = frozenset(("", "index", "idx", "id", "unnamed: 0", "#", "row"))
MISSING = frozenset(("", "nan", "na", "n/a", "null", "none", "-", "?"))
FEW = 0.5  # share under which different values among all look like classes


@dataclass(frozen=True)
class Columns:
    """The columns of a text table.

    Attributes:
        named: whether the first row holds their names.
        titles: one a column; made up where the file has none.
        numeric: positions of columns of numbers.
        texts: positions of columns whose text is kept: text, and numbers that may be labels.
    """

    named: bool
    titles: tuple[str, ...]
    numeric: tuple[int, ...]
    texts: tuple[int, ...]


def columns_of(
    sample: list[list[str]], expected: int | None = None, total: int | None = None, labels: bool = False
) -> Columns:
    """What the columns are, from the first rows without blank ones.

    Args:
        sample: cells of the first rows; at least one row.
        expected: rows of the table that this one goes with, if known.
        total: rows of this table, a header included, if known.
        labels: whether any column may hold labels.
    """
    width = len(sample[0])
    if len(sample) > 1 and len(sample[1]) == width + 1:
        sample = [["", *sample[0]], *sample[1:]]  # a header without a name for its index column
        width += 1
    even = [row for row in sample if len(row) == width]
    named = has_header(even, expected, total)
    body = even[1:] if named else even
    # a delimiter at the end of each line makes a last column of nothing
    if width > 1 and all(not row[-1] for row in even):
        width -= 1
    head = even[0] if named else [""] * width
    titles = distinct([title[:80] or f"column {at}" for at, title in enumerate(head[:width], 1)])
    cells = [[row[at] for row in body if row[at].lower() not in MISSING] for at in range(width)]
    numeric = tuple(at for at in range(width) if not cells[at] or numeric_share(cells[at]) >= 0.5)
    texts = [at for at in range(width) if at not in numeric]
    beside = {at for at in numeric if not labels and is_coordinate(titles[at], titles, cells[at])}
    texts += [
        at
        for at in numeric
        if labels or (at not in beside and may_be_label(titles[at], cells[at], at in (0, width - 1)))
    ]
    return Columns(named, titles, numeric, tuple(sorted(texts)))


def distinct(titles: list[str]) -> tuple[str, ...]:
    """The titles, a repeated one with its place."""
    return tuple(
        f"{title} (column {at + 1})" if title in titles[:at] else title for at, title in enumerate(titles)
    )


def is_coordinate(title: str, titles: tuple[str, ...], cells: list[str]) -> bool:
    """Whether a column of numbers called y is the coordinate beside x, and not the labels."""
    names = {one.lower() for one in titles}
    if title.lower() != "y" or "x" not in names:
        return False
    return bool((LABEL_WORDS - {"y"}) & names) or not _repeats(cells)


def may_be_label(title: str, cells: list[str], outer: bool) -> bool:
    """Whether a column of numbers may hold labels: by its name, or whole numbers that repeat at an end."""
    return title.lower() in LABEL_WORDS or (outer and _repeats(cells))


def _repeats(cells: list[str]) -> bool:
    whole = all(cell.lstrip("+-").isdigit() for cell in cells)
    return whole and len(cells) > 1 and len(set(cells)) <= max(2, FEW * len(cells))


def has_header(rows: list[list[str]], expected: int | None, total: int | None) -> bool:
    """Whether the first row holds names."""
    first, rest = rows[0], rows[1:]
    if not rest:
        return all(cell and number(cell) is None for cell in first) and bool(
            LABEL_WORDS & {c.lower() for c in first}
        )
    filled = [cell for cell in first if cell]
    counted = [str(at) for at in range(len(filled))], [str(at) for at in range(1, len(filled) + 1)]
    if len(filled) > 1 and filled in counted and rest[0][-len(filled) :] not in counted:
        return True  # numbered columns, as pandas writes them
    if not filled or numeric_share(filled) >= 0.5:
        return False
    for at, cell in enumerate(first):
        below = [row[at] for row in rest if row[at].lower() not in MISSING]
        if cell and number(cell) is None and below and numeric_share(below) >= 0.5:
            return True
    if LABEL_WORDS & {cell.lower() for cell in first}:
        return True
    alone = all(cell not in [row[at] for row in rest] for at, cell in enumerate(first))
    return alone and expected is not None and total == expected + 1
