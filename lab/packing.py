"""A zip of numpy arrays packed by LZMA, written and, before anything of it is unpacked, checked. No torch.

numpy reads such a file by itself. An LZMA decoder takes as much memory as the file says, up to 4 GiB, so that
is looked up first.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from losslib.errors import ParameterError

MAX_DICTIONARY = 16_000_000  # bytes that an LZMA decoder may ask for; what is written here asks for 8 MiB
HEAD = 30  # bytes of an entry before its name
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)


def write(arrays: Mapping[str, NDArray[Any]], path: str | Path | BinaryIO) -> None:
    """An npz packed by LZMA, which numpy itself cannot write but reads."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def check(file: BinaryIO, most: int) -> None:
    """Refuse a zip that would unpack to more than is read, or whose decoder would ask for much memory.

    Raises:
        ParameterError: it would.
        zipfile.BadZipFile: it is no zip.
    """
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    size = sum(entry.file_size for entry in entries)
    if size > most:
        raise ParameterError(f"run file: {size // 10**6} MB unpacked, at most {most // 10**6} MB are read")
    for entry in entries:
        if entry.compress_type not in PACKINGS:
            raise ParameterError("run file: it is packed in a way that is not read here")
        if entry.compress_type == zipfile.ZIP_LZMA and _dictionary(file, entry) > MAX_DICTIONARY:
            raise ParameterError(
                f"run file: unpacking asks for more than {MAX_DICTIONARY // 10**6} MB of memory at once"
            )
    file.seek(0)


def _dictionary(file: BinaryIO, entry: zipfile.ZipInfo) -> int:
    """How much memory the LZMA decoder of an entry asks for: the last 4 bytes of its 9 of properties."""
    file.seek(entry.header_offset)
    head = file.read(HEAD)
    file.seek(entry.header_offset + HEAD + sum(struct.unpack("<HH", head[26:30])) + 5)
    return int.from_bytes(file.read(4), "little")
