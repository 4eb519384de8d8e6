"""Vectors and labels together: what the files say, told back before anything runs."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets.base import Dataset, split
from lab.uploads.errors import UploadError
from lab.uploads.header import INDEX_WORDS, LABEL_WORDS
from lab.uploads.limits import UploadLimits
from lab.uploads.read import Table, read_file, rows_in
from lab.uploads.text import Bytes

NO_LABEL = "missing label"
HELD_OUT = 0.4
WHOLE = re.compile(r"[+-]?[0-9]{1,29}")
File = tuple[str, Bytes]


@dataclass(frozen=True, eq=False)
class Upload:
    """Embeddings that somebody brought.

    Attributes:
        name: of the file with the vectors.
        digest: sixteen hexadecimal digits that stand for the files' contents.
        vectors: (N, D) float32, all finite.
        labels: (N,) int64 from 0 to C - 1; all 0 without labels.
        class_names: C names, as the file spells them.
        has_labels: whether there were labels.
        label_column: where they came from, or "".
        choices: columns that could be the labels.
        kept: (N,) row of the file, counted from 0.
        rows: rows in the file.
        notes: sentences on what was understood, what was left out and why.
    """

    name: str
    digest: str
    vectors: NDArray[np.float32]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    has_labels: bool
    label_column: str
    choices: tuple[str, ...]
    kept: NDArray[np.int64]
    rows: int
    notes: tuple[str, ...]

    def parts(self, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows to train on and rows held out; the same rows where there are too few to hold out any."""
        train, held_out = split(self.labels, HELD_OUT, seed)
        return train, held_out if len(held_out) else train

    def dataset(self, seed: int = 0) -> Dataset:
        """The vectors as a data set of points: each class split alike, 60 % to train on.

        They are moved to mean 0 and scaled to variance 1, all coordinates alike, as generated points are.

        Args:
            seed: fixes the split.
        """
        train, held_out = self.parts(seed)
        wide = self.vectors.astype(np.float64)
        scaled = ((wide - wide.mean(axis=0)) / max(float(wide.std()), 1e-300)).astype(np.float32)
        note = f"From {self.name}, moved to mean 0 and scaled to variance 1."
        return Dataset("file", scaled, self.labels.copy(), self.class_names, train, held_out, note=note)


def understand(
    vectors: File,
    labels: File | None = None,
    label_column: str | None = None,
    limits: UploadLimits | None = None,
) -> Upload:
    """The vectors and labels in one or two files.

    Args:
        vectors: name and bytes of a csv, tsv, txt, npy or npz file, a vector a row; it may hold the labels.
        labels: the same of a file with a label a row.
        label_column: the column that holds the labels, of the labels' file if there is one; None chooses, ""
            takes none.
        limits: what is accepted.

    Raises:
        UploadError: what is wrong, where, and how to mend it.
    """
    limits = limits or UploadLimits()
    table = read_file(*vectors, limits)
    source, texts, notes = table, dict(table.texts), list(table.notes)
    if labels is not None:
        source = read_file(*labels, limits, labels=True, expected=table.rows)
        notes += source.notes
        if source.rows != table.rows:
            raise UploadError(
                f"{source.name} has {source.rows:,} labels and {table.name} has {table.rows:,} vectors; "
                "there must be one label a vector, in the same order"
            )
        rows = table.kept.tolist()
        texts = {title: tuple(column[row] for row in rows) for title, column in source.texts.items()}
    column = _label_column(source, texts, label_column, alone=labels is not None)
    features, left_out = _features(table, column if labels is None else "")
    notes += left_out
    numbers = table.numbers[:, features]
    if not features:
        raise UploadError(f"{table.name} has no columns of numbers besides labels and index")
    finite = np.asarray(np.isfinite(numbers).all(axis=1))
    if not finite.all():
        gone = table.kept[~finite].tolist()
        first, second = ("row holds", "was") if len(gone) == 1 else ("rows hold", "were")
        notes.append(
            f"{len(gone):,} {first} NaN, infinity, a number beyond 3.4e38 or nothing in a column of numbers "
            f"and {second} left out: {rows_in(gone)}, counted from 0."
        )
    if not finite.any():
        raise UploadError(
            f"{table.name}: every row holds NaN, infinity, a number beyond 3.4e38 or an empty cell; "
            "none is left"
        )
    if len(table.kept) < table.rows:
        notes.append(f"{table.rows:,} rows, of which a random sample of {len(table.kept):,} is used.")
    kept = table.kept[finite]
    said = [text for text, good in zip(texts[column], finite.tolist(), strict=True) if good] if column else []
    if (different := len(set(said) - {""})) > limits.classes:
        notes.append(
            f"The labels in {column!r} have {different:,} different values; at most {limits.classes:,} "
            "classes are shown here, so they are left out. Another column may be chosen."
        )
        column, said = "", []
    codes, names, about = _classes(said, len(kept), column)
    return Upload(
        name=table.name,
        digest=_digest(vectors, labels, column),
        vectors=np.ascontiguousarray(numbers[finite]),
        labels=codes,
        class_names=names,
        has_labels=bool(column),
        label_column=column,
        choices=tuple(texts),
        kept=kept,
        rows=table.rows,
        notes=(*notes, *about),
    )


def _label_column(source: Table, texts: dict[str, tuple[str, ...]], asked: str | None, alone: bool) -> str:
    if asked:
        if asked not in texts:
            known = ", ".join(map(repr, texts)) or "none"
            raise UploadError(
                f"{source.name} has no column {asked!r} that could hold labels; columns: {known}"
            )
        return asked
    if asked is not None:
        return ""
    if source.label or not alone:
        return source.label
    # a file of labels with one column, or with numbers alone: its first column that may hold labels
    if texts:
        return next(iter(texts))
    raise UploadError(f"{source.name} has no column that could hold labels: one text or whole number a row")


def _features(table: Table, label: str) -> tuple[list[int], list[str]]:
    """Positions of the columns of numbers that make up the vectors, and what was left out."""
    notes, features, constant = [], [], []
    for at, title in enumerate(table.titles):
        values = table.numbers[:, at]
        if title == label:
            continue
        if title.lower() in LABEL_WORDS and title in table.texts:
            notes.append(f"{title} is named like a label and is not part of the vectors.")
            continue
        several = len(table.titles) > 1
        counted = any(np.array_equal(values, table.kept + start) for start in (0, 1))
        named = title.lower() in INDEX_WORDS and len(np.unique(values)) == len(values)
        if at == 0 and several and (named or counted) and len(values) > 2:
            notes.append(
                f"The first column ({title}) counts the rows: taken as an index, not as part of a vector."
            )
        elif table.named and label and len(values) > 1 and np.ptp(values) == 0:
            constant.append(at)
        else:
            features.append(at)
    if not features:
        features, constant = constant, []  # all vectors are one point: a collapse, not columns to leave out
    if constant:
        shown = ", ".join(table.titles[at] for at in constant[:3])
        shown += f" and {len(constant) - 3} more" if len(constant) > 3 else ""
        notes.append(f"The same in every row, so left out: {shown}.")
    for title, column in table.texts.items():
        if title != label and title not in table.titles:
            different = ": all different, taken as names" if len(set(column)) == len(column) else ""
            notes.append(f"{title} is not part of the vectors{different}.")
    return features, notes


def _classes(
    said: list[str], count: int, column: str
) -> tuple[NDArray[np.int64], tuple[str, ...], list[str]]:
    """Class of each row, the names of the classes, and sentences."""
    if not said:
        return (
            np.zeros(count, dtype=np.int64),
            ("no label",),
            ["No labels: measures that need them are left out."],
        )
    names = sorted({text for text in said if text}, key=_in_order)
    missing = sum(not text for text in said)
    notes = [f"Labels from {column!r}: {len(names):,} {'class' if len(names) == 1 else 'classes'}."]
    if missing:
        word = "label is" if missing == 1 else "labels are"
        notes.append(f"{missing:,} {word} missing: a class of their own, {NO_LABEL!r}.")
        names.append(NO_LABEL if NO_LABEL not in names else f"{NO_LABEL} (none given)")
    if count > 1 and len(names) == count:
        notes.append("Every label is different, so there is no positive pair.")
    place = {name: at for at, name in enumerate(names)}
    codes = [place[text] if text else len(names) - 1 for text in said]
    return np.array(codes, dtype=np.int64), tuple(names), notes


def _in_order(text: str) -> tuple[int, int, str]:
    """Whole numbers by size, before words by alphabet."""
    return (0, int(text), text) if WHOLE.fullmatch(text) else (1, 0, text)


def _digest(vectors: File, labels: File | None, column: str) -> str:
    total = hashlib.sha256()
    for file in (vectors, labels):
        total.update(b"\0" if file is None else bytes(8) + hashlib.sha256(file[1]).digest())
    total.update(column.encode())
    return total.hexdigest()[:16]
