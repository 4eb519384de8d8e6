"""What a server accepts of an upload; each limit may be set by a variable."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from losslib.params import Integer, Param

MIB = 2**20


@dataclass(frozen=True)
class UploadLimits:
    """What is accepted of one upload.

    Attributes:
        megabytes: size of a file, in MiB, and of what a compressed file holds.
        rows: rows that a file may have.
        kept: rows that are worked on; of larger files a random sample, said so.
        columns: numbers a vector may have.
        classes: different labels.
        held: MiB of all visitors' files together that wait in memory.
        files: files that one visitor has there.
        at_once: files of all visitors that are on their way.
    """

    megabytes: int = 256
    rows: int = 2_000_000
    kept: int = 5_000
    columns: int = 4096
    classes: int = 1000
    held: int = 1024
    files: int = 16
    at_once: int = 8

    @property
    def bytes(self) -> int:
        """`megabytes` in bytes."""
        return self.megabytes * MIB

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> UploadLimits:
        """The defaults, with each limit that a variable sets: LOSSLAB_UPLOAD_MEGABYTES=64.

        Raises:
            ParameterError: a variable is not a whole number above 0.
        """
        found: dict[str, Any] = {}
        for field in fields(cls):
            name = f"LOSSLAB_UPLOAD_{field.name.upper()}"
            if name in environment:
                param = Param(field.default, valid=Integer(1, None), name=name)
                found[field.name] = param.parse(environment[name], name)
        return cls(**found)

    def sentence(self) -> str:
        """The limits in words, for the page."""
        return (
            f"Up to {self.megabytes} MiB and {self.rows:,} rows of at most {self.columns:,} numbers; of more "
            f"than {self.kept:,} rows a random sample of that many is used."
        )
