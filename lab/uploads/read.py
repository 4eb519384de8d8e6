"""One file as a table of numbers and texts, with what was noticed on the way."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.uploads.arrays import LABELS, NUMBERS, read_npy, read_npz
from lab.uploads.errors import UploadError, place
from lab.uploads.header import LABEL_WORDS, MISSING, Columns, columns_of
from lab.uploads.limits import UploadLimits
from lab.uploads.text import NAMES, Bytes, Row, number, rows_of

SAMPLE = 500  # rows looked at for what the columns are
VECTOR_NAMES = ("embeddings", "embedding", "vectors", "features", "x", "data")
ENDINGS = ("csv", "tsv", "txt", "npy", "npz")


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds.

    Attributes:
        name: of the file.
        rows: rows of data in the file.
        kept: which of them are here, (K,), counted from 0, ascending.
        titles: names of the columns of numbers.
        numbers: (K, C) float32; a cell without a number is NaN.
        texts: columns that may be labels, by name, K texts each, as the file has them.
        label: the column that looks like the labels, or "".
        notes: sentences on what was understood.
        named: whether the file names its columns.
    """

    name: str
    rows: int
    kept: NDArray[np.int64]
    titles: tuple[str, ...]
    numbers: NDArray[np.float32]
    texts: dict[str, tuple[str, ...]]
    label: str = ""
    notes: tuple[str, ...] = field(default=())
    named: bool = False


def read_file(
    name: str, content: Bytes, limits: UploadLimits, *, labels: bool = False, expected: int | None = None
) -> Table:
    """The table in a file.

    Args:
        name: of the file; its ending says npy or npz, anything else is read as text.
        content: its bytes.
        limits: what is accepted.
        labels: whether it holds labels: then a blank line inside is a missing label and every row is kept.
        expected: rows of the vectors that the labels belong to.

    Raises:
        UploadError: what is wrong, where, and how to mend it.
    """
    if not len(content):
        raise UploadError(f"{name} is empty")
    if len(content) > limits.bytes:
        size = len(content) / 2**20
        raise UploadError(f"{name} has {size:,.0f} MiB; at most {limits.megabytes} MiB are read here")
    ending = name.rpartition(".")[2].lower()
    begins = bytes(content[:4])
    if ending == "npz" or begins == b"PK\x03\x04":
        return _chosen(name, read_npz(content, name, limits), limits, labels)
    if ending == "npy" or begins == b"\x93NUM":
        return _from_array(name, read_npy(content, name), {}, limits, labels)
    if begins[:2] in (b"\x80\x04", b"\x80\x05", b"\x80\x03", b"\x80\x02"):
        raise UploadError(
            f"{name} is a pickle, which could run code and is never read; save it with numpy.save"
        )
    return _from_text(name, content, limits, labels, expected)


def _chosen(name: str, arrays: dict[str, NDArray[Any]], limits: UploadLimits, labels: bool) -> Table:
    """The vectors among an archive's arrays, and the labels that go with them."""
    shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
    if labels:
        flat = {key: found for key, array in arrays.items() if (found := _labels_in(key, array)) is not None}
        key = next((key for key in flat if key.lower() in LABEL_WORDS), next(iter(flat), None))
        if key is None:
            raise UploadError(f"{name} has no array of labels, one a row; it holds {shapes}")
        return _from_array(name, flat[key], {}, limits, labels)
    wide = {key: a for key, a in arrays.items() if a.ndim == 2 and a.dtype.kind in NUMBERS}
    key = next((key for key in wide if key.lower() in VECTOR_NAMES), next(iter(wide), None))
    if key is None:
        raise UploadError(f"{name} has no array of numbers of shape (rows, columns); it holds {shapes}")
    vectors = wide[key]
    beside = {
        other: found
        for other, array in arrays.items()
        if other != key and (found := _labels_in(other, array)) is not None and len(found) == len(vectors)
    }
    return _from_array(name, vectors, beside, limits, labels, f"The vectors are the array {key!r}.")


def _labels_in(key: str, array: NDArray[Any]) -> NDArray[Any] | None:
    """An array of an archive as labels, (rows,); None where it is none. Floats need a label's name."""
    named = key.lower() in LABEL_WORDS
    if named and array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    fits = array.ndim == 1 and array.dtype.kind in LABELS + ("f" if named else "")
    if not fits or (array.dtype.kind == "f" and (array != np.floor(array))[~np.isnan(array)].any()):
        return None  # fractions are a quantity, not classes
    return array


def _from_array(
    name: str,
    array: NDArray[Any],
    beside: dict[str, NDArray[Any]],
    limits: UploadLimits,
    labels: bool,
    *notes: str,
) -> Table:
    if labels:
        flat = array.reshape(-1) if array.ndim == 2 and 1 in array.shape else array
        if flat.ndim != 1 or flat.dtype.kind not in LABELS + "f":
            raise UploadError(f"{name} must hold one label a row, shape (rows,); it has shape {array.shape}")
        _check_rows(name, len(flat), limits)  # before each becomes a text
        rows = np.arange(len(flat), dtype=np.int64)
        empty = np.empty((len(flat), 0), dtype=np.float32)
        return Table(name, len(flat), rows, (), empty, {"label": _as_texts(flat)}, "label", notes)
    if array.dtype.kind not in NUMBERS:
        raise UploadError(f"{name} holds text; vectors are numbers of shape (rows, columns)")
    if array.ndim == 1:
        array, notes = array[:, np.newaxis], (*notes, "One number a row: read as vectors of one dimension.")
    if array.ndim != 2:
        raise UploadError(
            f"{name} has shape {array.shape}; vectors have shape (rows, columns), so reshape it with "
            "array.reshape(len(array), -1)"
        )
    _check_size(name, array.shape[0], array.shape[1], limits)
    kept = sample_of(len(array), limits.kept)
    with np.errstate(over="ignore"):  # too large for float32: infinity, which is reported with the others
        numbers = array[kept].astype(np.float32)
    titles = tuple(f"column {at}" for at in range(1, array.shape[1] + 1))
    texts = {key: _as_texts(other[kept]) for key, other in beside.items()}
    label = next((key for key in texts if key.lower() in LABEL_WORDS), next(iter(texts), ""))
    return Table(name, len(array), kept, titles, numbers, texts, label, notes)


def _as_texts(array: NDArray[Any]) -> tuple[str, ...]:
    if array.dtype.kind == "f":
        return tuple("" if np.isnan(v) else str(int(v) if v.is_integer() else v) for v in array.tolist())
    if array.dtype.kind == "S":
        return tuple(value.decode("utf-8", "replace") for value in array.tolist())
    return tuple(str(value) for value in array.tolist())


def sample_of(rows: int, most: int) -> NDArray[np.int64]:
    """All rows, or a random sample without repetition, always the same; ascending."""
    if rows <= most:
        return np.arange(rows, dtype=np.int64)
    chosen = np.random.default_rng(0).choice(rows, most, replace=False)
    return np.sort(chosen.astype(np.int64))


def _check_size(name: str, rows: int, columns: int, limits: UploadLimits) -> None:
    if not rows or not columns:
        raise UploadError(f"{name} has no rows of numbers")
    _check_rows(name, rows, limits)
    if columns > limits.columns:
        raise UploadError(f"{name} has {columns:,} columns; at most {limits.columns:,} are read here")


def _check_rows(name: str, rows: int, limits: UploadLimits) -> None:
    if rows > limits.rows:
        raise UploadError(f"{name} has {rows:,} rows; at most {limits.rows:,} are read here")


def _from_text(name: str, content: Bytes, limits: UploadLimits, labels: bool, expected: int | None) -> Table:
    rows, delimiter, encoding = rows_of(content, name)
    first = []
    for row in itertools.islice(rows, SAMPLE):
        if len(row.cells) > limits.columns + 1:  # before many such rows are held; one may be empty
            _check_size(name, 1, len(row.cells), limits)
        first.append(row)
    filled = [row.cells for row in first if any(row.cells)]
    if not filled:
        raise UploadError(f"{name} has no rows")
    total = None
    if expected is not None and len(first) < SAMPLE:
        total = 1 + max(at for at, row in enumerate(first) if row.cells)
    columns = columns_of(filled, expected, total, labels)
    _check_size(name, 1, len(columns.titles), limits)
    reader = _Reader(name, columns, limits, blanks=labels)
    for row in itertools.chain(first, rows):
        reader.take(row)
    notes = [f"{name}: cells are separated by {NAMES[delimiter]}." if delimiter not in (",", "") else ""]
    notes.append(f"{name}: read as {encoding}." if encoding not in ("utf-8", "utf-8-sig") else "")
    if columns.named:
        notes.append(f"{name}: the first row was read as names.")
    return reader.table(tuple(filter(None, notes)))


class _Reader:
    """Takes rows one by one; keeps a bounded random sample (reservoir) of those with numbers."""

    def __init__(self, name: str, columns: Columns, limits: UploadLimits, blanks: bool) -> None:
        self.name, self.columns, self.limits, self.blanks = name, columns, limits, blanks
        self.width = len(columns.titles)
        self.most = limits.rows if blanks else limits.kept
        self.random = np.random.default_rng(0)
        self.skip_names = columns.named
        self.rows, self.waiting = 0, 0
        self.kept: list[int] = []
        self.values: list[NDArray[np.float32]] = []
        self.texts: list[tuple[str, ...]] = []

    def take(self, row: Row) -> None:
        """One line of the file."""
        if not any(row.cells) and len(row.cells) < 2 and (not self.blanks or not row.cells):
            self.waiting += 1  # blank: skipped, or missing labels if a label follows
            return
        if self.skip_names:
            self.skip_names, self.waiting = False, 0
            return
        if self.blanks:
            for _ in range(self.waiting):
                self._keep([""] * self.width, row.line)
        self.waiting = 0
        self._keep(row.cells, row.line)

    def _keep(self, cells: list[str], line: int) -> None:
        if len(cells) == self.width + 1 and not cells[-1]:
            cells = cells[:-1]
        if len(cells) != self.width:
            count = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            raise UploadError(
                f"{self.name}, {place(self.rows, line)}: {count} where {self.width} were expected; mend the "
                "row, or leave it out"
            )
        if self.rows >= self.limits.rows:
            raise UploadError(
                f"{self.name} has more than {self.limits.rows:,} rows, which is all that is read"
            )
        numbers = self._numbers(cells, line)
        at = len(self.kept) if len(self.kept) < self.most else int(self.random.integers(self.rows + 1))
        if at < self.most:
            texts = tuple(cells[position] for position in self.columns.texts)
            if at == len(self.kept):
                self.kept.append(self.rows)
                self.values.append(numbers)
                self.texts.append(texts)
            else:
                self.kept[at], self.values[at], self.texts[at] = self.rows, numbers, texts
        self.rows += 1

    def _numbers(self, cells: list[str], line: int) -> NDArray[np.float32]:
        found = [number(cells[at]) for at in self.columns.numeric]
        if None in found:
            for place_of, at in enumerate(self.columns.numeric):
                if found[place_of] is None:
                    found[place_of] = self._no_number(cells[at], at, line)
        with np.errstate(over="ignore"):
            return np.array(found, dtype=np.float64).astype(np.float32)

    def _no_number(self, cell: str, at: int, line: int) -> float:
        if cell.lower() in MISSING or at in self.columns.texts:
            return float("nan")
        raise UploadError(
            f"{self.name}, {place(self.rows, line)}, {self._titled(at)}: "
            f"{cell[:40]!r} is not a number; mend the cell, or leave the row out"
        )

    def _titled(self, at: int) -> str:
        """Which column it is, with its name if it has one."""
        place_of, title = f"column {at + 1}", self.columns.titles[at]
        return place_of if title == place_of else f"{place_of} ({title})"

    def table(self, notes: tuple[str, ...]) -> Table:
        """What was taken."""
        _check_size(self.name, self.rows, self.width, self.limits)
        order = np.argsort(self.kept)
        kept = np.array(self.kept, dtype=np.int64)[order]
        numbers = np.array(self.values, dtype=np.float32).reshape(len(kept), -1)[order]
        titles, columns = self.columns.titles, self.columns
        texts = {
            titles[position]: tuple(self.texts[row][at] for row in order.tolist())
            for at, position in enumerate(columns.texts)
        }
        named = [title for title in texts if title.lower() in LABEL_WORDS]
        plain = [titles[at] for at in columns.texts if at not in columns.numeric]
        repeated = [title for title in plain if len(set(texts[title])) < len(kept)]
        label = next(iter([*named, *repeated[::-1]]), "")
        return Table(
            self.name,
            self.rows,
            kept,
            tuple(titles[at] for at in columns.numeric),
            numbers,
            texts,
            label,
            notes,
            self.columns.named,
        )


def rows_in(numbers: list[int], most: int = 5) -> str:
    """Row numbers in words: "rows 3 and 7"."""
    shown = [str(one) for one in numbers[:most]]
    if len(numbers) > most:
        return f"rows {', '.join(shown)} and {len(numbers) - most} more"
    return f"row {shown[0]}" if len(shown) == 1 else f"rows {', '.join(shown[:-1])} and {shown[-1]}"
