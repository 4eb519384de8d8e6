"""The one error of an upload: a sentence on what was wrong, what was expected and how to mend it."""

from __future__ import annotations

from losslib.errors import ParameterError


class UploadError(ParameterError):
    """A file cannot be understood."""


def place(row: int, line: int) -> str:
    """Where in a file: rows of data are counted from 0, lines of the file from 1."""
    return f"row {row} (line {line} of the file)"
