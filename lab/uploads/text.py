"""Text files: from bytes to rows of cells, whatever the encoding and the delimiter."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator
from typing import NamedTuple

from lab.uploads.errors import UploadError

LONGEST = 1_000_000  # characters of a line
SNIFFED = 64_000  # characters looked at for the delimiter
DELIMITERS = ("\t", ";", ",", "|")
NAMES = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "bars", " ": "spaces", "": "nothing"}
BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))

Bytes = bytes | bytearray | memoryview


# 0,5 where cells are separated by something else
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")


class Row(NamedTuple):
    """Cells of one line; `line` counts from 1. A blank line has no cells."""

    line: int
    cells: list[str]


def encoding_of(content: Bytes) -> str:
    """How the text is encoded: by its byte order mark, by the zeros of UTF-16, else UTF-8 or Windows-1252."""
    head = bytes(content[:4096])
    for mark, name in BOMS:
        if head.startswith(mark):
            return name
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if len(head) >= 4 and max(even, odd) > 0.4 * (len(head) // 2) and min(even, odd) == 0:
        return "utf-16-le" if odd > even else "utf-16-be"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), 1 << 20):
            decoder.decode(bytes(content[start : start + (1 << 20)]))
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def lines_of(content: Bytes, encoding: str) -> io.TextIOWrapper:
    """The text, decoded piece by piece; line ends of any kind become one."""
    return io.TextIOWrapper(io.BytesIO(content), encoding=encoding, errors="replace", newline=None)


def delimiter_of(sample: str) -> str:
    """The delimiter: the one that splits most lines into the same number of cells, more than one.

    Spaces count when no other does; "" where each line is one cell.
    """
    lines = [line for line in sample.split("\n") if line.strip()][:200]
    for mark in ("\t", ";"):
        if decimal_commas(lines, mark):
            return mark
    best, score = "", (0.0, 0)
    for mark in DELIMITERS:
        widths = [len(row) for row in csv.reader(lines, delimiter=mark, skipinitialspace=True)]
        common = max(set(widths), key=widths.count, default=1)
        agreed = widths.count(common) / max(len(widths), 1)
        if common > 1 and (agreed, common) > score:
            best, score = mark, (agreed, common)
    if best and score[0] >= 0.5:
        return best
    spaced = [len(line.split()) for line in lines]
    if spaced and max(spaced) > 1 and numeric_share(" ".join(lines).split()) > 0.5:
        return " "
    return best


def decimal_commas(lines: list[str], delimiter: str) -> bool:
    """Whether most cells between these delimiters are numbers with a comma for a point."""
    cells = [cell.strip() for line in lines if delimiter in line for cell in line.split(delimiter) if cell]
    return sum(DECIMAL_COMMA.fullmatch(cell) is not None for cell in cells) > 0.5 * max(len(cells), 1)


def numeric_share(cells: list[str]) -> float:
    """Share of cells that are numbers."""
    return sum(number(cell) is not None for cell in cells) / max(len(cells), 1)


def number(cell: str) -> float | None:
    """The number a cell stands for, or None. Python's own spellings with underscores are none."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def rows_of(content: Bytes, name: str) -> tuple[Iterator[Row], str, str]:
    """The rows of a text file, its delimiter and its encoding. Decimal commas become points.

    Raises:
        UploadError: on reading a row that no csv reader can make sense of.
    """
    encoding = encoding_of(content)
    if b"\0" in bytes(content[:4096]) and not encoding.startswith("utf-16"):
        raise UploadError(
            f"{name} is not a text file; save the vectors as csv, or as npy or npz with that ending"
        )
    sample = lines_of(content, encoding).read(SNIFFED)
    if len(sample) == SNIFFED:
        sample = sample.rpartition("\n")[0] or sample  # the last line may have been cut
    delimiter = delimiter_of(sample)
    rows = _rows(lines_of(content, encoding), delimiter, name)
    if delimiter in ("\t", ";") and decimal_commas(sample.split("\n")[:200], delimiter):
        rows = (Row(line, [_pointed(cell) for cell in cells]) for line, cells in rows)
    return rows, delimiter, encoding


def _pointed(cell: str) -> str:
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell) else cell


def bounded(lines: io.TextIOWrapper, name: str) -> Iterator[str]:
    """The lines, none of them read further than a row of vectors can be long."""
    at = 1
    while line := lines.readline(LONGEST + 1):
        if len(line) > LONGEST:
            raise UploadError(
                f"{name}, line {at} has more than {LONGEST:,} characters; put one vector a line"
            )
        yield line
        at += 1


def _rows(lines: io.TextIOWrapper, delimiter: str, name: str) -> Iterator[Row]:
    if delimiter == " ":
        for at, line in enumerate(bounded(lines, name), 1):
            yield Row(at, line.split())
        return
    # a delimiter that stands nowhere keeps quotes working where each line is one cell
    reader = csv.reader(
        bounded(lines, name), delimiter=delimiter or "\x1f", skipinitialspace=True, strict=True
    )
    last = 0
    try:
        for cells in reader:
            yield Row(last + 1, [cell.strip() for cell in cells])
            last = reader.line_num
    except csv.Error as error:
        raise UploadError(
            f"{name}, line {last + 1}: {error}; a cell may have {csv.field_size_limit():,} characters, "
            "and a quote that opens must close"
        ) from None
