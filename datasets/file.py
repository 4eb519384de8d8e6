"""Vectors and labels that somebody dropped on the Check page. Until then: the digits as vectors."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from datasets import digits
from datasets.base import Dataset
from losslib.errors import ParameterError
from losslib.params import Param, Text

TITLE = "Your own vectors"
SUMMARY = "Vectors and labels dropped on the Check page; without any, the digits as vectors of 64 pixels."
KIND = "points"
OPTIONS: dict[str, Param] = {
    "digest": Param(
        "",
        valid=Text("[0-9a-f]{16}|", "16 digits and letters from a to f", ("", "0123456789abcdef")),
        name="digest",
        title="Digest of the file",
        meaning="stands for the file's contents, so that a link knows which file it needs",
    ),
    "name": Param(
        "",
        valid=Text(r"[^\x00-\x1f]{0,80}", "at most 80 characters", ("", "vectors.csv")),
        name="name",
        title="Name of the file",
        meaning="what the file was called",
    ),
}

MOST = 16  # files in memory; the one not used for longest goes first
_OFFERED: OrderedDict[str, Callable[[int], Dataset]] = OrderedDict()
_LOCK = threading.Lock()


def offer(digest: str, maker: Callable[[int], Dataset]) -> None:
    """From now on a run may name that file.

    Args:
        digest: stands for its contents.
        maker: from a seed to the data set.
    """
    with _LOCK:
        _OFFERED[digest] = maker
        _OFFERED.move_to_end(digest)
        while len(_OFFERED) > MOST:
            _OFFERED.popitem(last=False)


def offered(digest: str) -> Callable[[int], Dataset] | None:
    """The maker of that file, which is thereby used; None when nobody brought it."""
    with _LOCK:
        maker = _OFFERED.get(digest)
        if maker is not None:
            _OFFERED.move_to_end(digest)
    return maker


def load(seed: int, digest: str, name: str) -> Dataset:
    """The vectors, 60 % of each class to train on. Raises ParameterError when nobody brought that file."""
    if not digest:
        pixels = digits.load(seed)
        vectors = pixels.inputs.reshape(len(pixels), -1)
        note = "The digits as vectors of 64 pixels, until you drop vectors of your own on the Check page."
        return Dataset(
            "file", vectors, pixels.labels, pixels.class_names, pixels.train, pixels.held_out, note=note
        )
    maker = offered(digest)
    if maker is None:
        raise ParameterError(missing(digest, name))
    return maker(seed)


def missing(digest: str, name: str) -> str:
    """Which file has to be brought for that digest; "" where there is none to bring."""
    if not digest or offered(digest) is not None:
        return ""
    called = f"the file {name}" if name else "a file"
    return (
        f"this needs {called} (digest {digest}), which this server does not have: drop it on the "
        "Check page, under Check my embeddings, and open the link again"
    )
