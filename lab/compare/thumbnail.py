"""A grey picture as the text of an image address, without a picture library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


def image_address(picture: NDArray[np.integer[Any]]) -> str:
    """A `data:` address of a PNG of a picture (H, W) uint8."""
    height, width = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(picture, dtype=np.uint8))
    head = struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, body) for kind, body in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )
    return "data:image/png;base64," + base64.b64encode(content).decode()


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
