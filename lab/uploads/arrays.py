"""npy and npz files: arrays read without evaluating a header or loading a pickle."""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.uploads.errors import UploadError
from lab.uploads.limits import UploadLimits
from lab.uploads.text import Bytes

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000
MOST_ENTRIES = 64
HEADER = re.compile(
    r"\{\s*'descr'\s*:\s*'(?P<descr>[<>|=]?[a-zA-Z]\d*)'\s*,"
    r"\s*'fortran_order'\s*:\s*(?P<order>True|False)\s*,"
    r"\s*'shape'\s*:\s*\((?P<shape>[\d\s,]*)\)\s*,?\s*\}\s*"
)
# what zipfile raises for damaged archives, some of it by accident
NOT_A_ZIP = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, KeyError, IndexError)
NUMBERS, LABELS = "fiub", "iubUS"  # numpy's kinds that are read, as vectors and as labels


def read_npy(content: Bytes, name: str) -> NDArray[Any]:
    """The array in an npy file, as a view of its bytes.

    Raises:
        UploadError: no npy file, Python objects or fields in it, or a header that promises other bytes than
            there are.
    """
    view = memoryview(content)
    if bytes(view[:6]) != MAGIC:
        raise UploadError(f"{name} does not begin as an npy file does; write it with numpy.save")
    major = view[6] if len(view) > 6 else 0
    wide = major >= 2
    if major not in (1, 2, 3) or len(view) < (12 if wide else 10):
        raise UploadError(f"{name} has no npy header that is known here (versions 1 to 3)")
    (length,) = struct.unpack("<I" if wide else "<H", view[8 : 12 if wide else 10])
    start = 12 if wide else 10
    if length > LONGEST_HEADER or start + length > len(view):
        raise UploadError(f"{name} has a header of {length:,} bytes, which no plain array has")
    text = bytes(view[start : start + length]).decode("latin-1")
    return _array(text, view[start + length :], name)


def _array(header: str, body: memoryview, name: str) -> NDArray[Any]:
    found = HEADER.fullmatch(header.strip("\n\0 "))
    if found is None or found["descr"].lstrip("<>|=")[0] not in NUMBERS + "US":
        raise UploadError(
            f"{name} does not hold a plain array of real numbers or text (complex numbers, Python "
            "objects and fields are not read); save it with numpy.save(file, array.astype('float32'))"
        )
    try:  # such as <f1, or a length of thousands of digits
        kind = np.dtype(found["descr"])
        shape = tuple(int(part) for part in found["shape"].replace(" ", "").split(",") if part)
    except (TypeError, ValueError) as error:
        raise UploadError(f"{name} has a damaged header ({str(error)[:80]}); upload it again") from None
    promised = math.prod(shape) * kind.itemsize
    if promised != len(body):
        raise UploadError(
            f"{name}: the header promises {promised:,} bytes (shape {shape}), the file has {len(body):,}; "
            "it is damaged or was cut off, upload it again"
        )
    flat = np.frombuffer(body, dtype=kind) if promised else np.empty(0, dtype=kind)
    if kind.kind == "U" and flat.size:  # numpy makes text of any four bytes, Python of real characters alone
        codes = np.frombuffer(body, dtype=np.dtype("u4").newbyteorder(kind.byteorder))
        if codes.max() > 0x10FFFF:
            raise UploadError(f"{name} holds text with characters that do not exist; upload it again")
    return flat.reshape(shape, order="F" if found["order"] == "True" else "C")


def read_npz(content: Bytes, name: str, limits: UploadLimits) -> dict[str, NDArray[Any]]:
    """The arrays in an npz file by name; sizes are checked before anything is unpacked.

    Raises:
        UploadError: no zip file, too many or too large entries, or an entry that is no plain array.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if len(entries) > MOST_ENTRIES:
                raise UploadError(f"{name} has {len(entries)} entries; at most {MOST_ENTRIES} are read")
            if total > limits.bytes:
                raise UploadError(
                    f"{name} unpacks to {total / 2**20:,.0f} MiB; at most {limits.megabytes} MiB are read"
                )
            found = {}
            for entry in entries:
                if not entry.filename.endswith(".npy"):
                    raise UploadError(
                        f"{name} holds {entry.filename[:80]!r}, which is no array of numpy.savez"
                    )
                # never more than the entry says it has, whatever the compressed bytes would give
                with archive.open(entry) as packed:
                    unpacked = packed.read(entry.file_size)
                key = entry.filename.removesuffix(".npy")
                found[key] = read_npy(unpacked, f"{key[:80]!r} in {name}")
            return found
    except UploadError:
        raise
    except (*NOT_A_ZIP, RuntimeError, ValueError, EOFError, OSError) as error:
        raise UploadError(
            f"{name} is no npz file that can be read ({str(error)[:120]}); write it with numpy.savez"
        ) from None
