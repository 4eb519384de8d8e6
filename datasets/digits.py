"""The 8 x 8 digits that scikit-learn ships."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from datasets.base import Dataset, split
from datasets.tables import shipped_table
from losslib.params import Param

TITLE = "Digits"
SUMMARY = "1,797 handwritten digits of 8 x 8 pixels, shipped with scikit-learn."
KIND = "images"
OPTIONS: dict[str, Param] = {}


@cache
def _arrays() -> tuple[Any, Any, Any]:
    table = shipped_table("sklearn", "datasets/data/digits.csv.gz")
    pixels, labels = table[:, :-1].reshape(-1, 8, 8), table[:, -1].astype(np.int64)
    inputs = (pixels[:, None] / 16.0).astype(np.float32)
    return inputs, labels, (pixels.astype(np.uint16) * 255 // 16).astype(np.uint8)


def load(seed: int) -> Dataset:
    """Pixels from 0 to 1; half of each class is held out."""
    inputs, labels, images = _arrays()
    train, held_out = split(labels, 0.5, seed)
    names = tuple(str(digit) for digit in range(10))
    note = "Optical recognition of handwritten digits, UCI, as shipped with scikit-learn."
    return Dataset("digits", inputs, labels, names, train, held_out, images, note)
