"""The process that computes layouts: `python -m lab.layout_worker`, spoken to by `lab.layout_process`.

It reads requests from its input until that ends. A request is its length (8 bytes, little-endian) and an
npz file; each answer is a letter, the length of what follows (8 bytes) and that: `p` progress as a double,
`r` positions as npy, `e` a sentence. One thread, and no more of the processor than others leave.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import sys
from contextlib import suppress
from typing import BinaryIO

import numpy as np

HEAD = struct.Struct("<cQ")
LENGTH = struct.Struct("<Q")
PROGRESS = (re.compile(r"Iteration (\d+):"), re.compile(r"completed\s+(\d+)\s*/\s*(\d+)"))


class Progress(io.TextIOBase):
    """Standard output of the libraries: what they print of their progress becomes messages."""

    def __init__(self, out: BinaryIO, iterations: int) -> None:
        self._out, self._iterations, self._line = out, iterations, ""

    def write(self, text: str) -> int:
        """Takes any piece of text; a message goes out for each line that tells how far it is."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            share = progress_in(line, self._iterations)
            if share is not None:
                send(self._out, b"p", struct.pack("<d", share))
        return len(text)


def progress_in(line: str, iterations: int) -> float | None:
    """The share done that a line of scikit-learn's or UMAP's log tells, 0 to 1; None if it tells none."""
    iteration, epochs = (pattern.search(line) for pattern in PROGRESS)
    if iteration:
        return min(1.0, int(iteration[1]) / iterations)
    return min(1.0, int(epochs[1]) / max(1, int(epochs[2]))) if epochs else None


def send(out: BinaryIO, kind: bytes, payload: bytes) -> None:
    """Writes one answer."""
    out.write(HEAD.pack(kind, len(payload)) + payload)
    out.flush()


def answer(request: bytes, out: BinaryIO) -> None:
    """Computes one layout; whatever goes wrong is answered as a sentence."""
    from lab.layouts import ITERATIONS, METHODS, compute
    from losslib.errors import ParameterError

    title = "The layout"
    try:
        with np.load(io.BytesIO(request), allow_pickle=False) as arrays:
            settings = json.loads(str(arrays["settings"]))
            start = arrays["start"] if arrays["start"].size else None
            embeddings = arrays["embeddings"]
        title = METHODS[settings["name"]].title
        sys.stdout = Progress(out, ITERATIONS)
        positions = compute(settings["name"], embeddings, settings["options"], start, settings["seed"])
        stored = io.BytesIO()
        np.save(stored, positions, allow_pickle=False)
        send(out, b"r", stored.getvalue())
    except ParameterError as error:
        send(out, b"e", str(error).encode())
    except Exception as error:
        send(out, b"e", f"{title} could not be computed: {type(error).__name__}, {error}".encode())


def main() -> None:
    """Answers requests until the input ends."""
    # Compiled code prints to the descriptor itself: answers go through a copy of it.
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(AttributeError, OSError):
        os.nice(5)
    source = sys.stdin.buffer
    while len(head := source.read(LENGTH.size)) == LENGTH.size:
        answer(source.read(LENGTH.unpack(head)[0]), out)


if __name__ == "__main__":
    main()
