"""What the tests of miners share: batches, and what holds of everything that is mined."""

from typing import Any

import torch
from torch import Tensor

from losslib import catalog
from losslib.types import PairIndices, TripletIndices

NAMES = list(catalog.miners())
TRIPLETS = {"AngularMiner", "BatchHardMiner", "DistanceWeightedMiner", "TripletMarginMiner"}
EUCLIDEAN_ONLY = {"AngularMiner", "DistanceWeightedMiner"}


def batch(seed: int, rows: int = 14, size: int = 3, classes: int = 4) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, size, generator=source, dtype=torch.float64)
    return x, torch.randint(0, classes, (rows,), generator=source)


X, Y = batch(1)
R, RY = batch(2, rows=11, classes=5)
SETS: list[tuple[Any, ...]] = [(X, Y), (X, Y, R, RY)]


def check_relations(name: str, mined: Any, y: Tensor, ry: Tensor | None) -> None:
    same_set, ry = ry is None, y if ry is None else ry
    assert isinstance(mined, TripletIndices if name in TRIPLETS else PairIndices)
    a, p, b, n = mined if len(mined) == 4 else (mined[0], mined[1], mined[0], mined[2])
    assert bool((y[a] == ry[p]).all())
    assert bool((y[b] != ry[n]).all())
    assert not same_set or not bool((a == p).any())
    assert all(index.dtype == torch.int64 for index in mined)
