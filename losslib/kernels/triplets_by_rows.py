"""TripletMarginLoss over all triplets in blocks of whole rows: with references, and of squared distances."""

from __future__ import annotations

from typing import Any

import torch

from losslib.inputs import Batch
from losslib.kernels.blocked_triplets import _FEW, _Part
from losslib.kernels.function import Found, Inputs
from losslib.kernels.row_blocks import FAR, Part, RowBlocks
from losslib.kernels.scratch import take
from losslib.reducers import AvgNonZeroReducer, SumReducer


def triplets(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """TripletMarginLoss."""
    blocks = RowBlocks(loss, x, batch, needs)
    total, active, sign = 0.0, 0.0, -1.0 if blocks.inverted else 1.0
    for part in blocks.parts():
        found = _Triplets(blocks, part, loss.margin, sign)
        total += found.total
        active += found.active
        if found.active and any(needs):
            blocks.pull(part, found.slope())
    each = 1.0
    if type(loss.reducer) is not SumReducer:
        every = float(blocks.positives.double() @ blocks.negatives.double())
        each = 1 / max(active if type(loss.reducer) is AvgNonZeroReducer else every, 1.0)
    return Found(x.embeddings.new_tensor(total * each), *blocks.gradients([sign * each]))


class _Triplets(_Part):
    """The triplets of a block of anchors; a row and a class that is not among the references have none."""

    def __init__(self, blocks: RowBlocks, part: Part, margin: float, sign: float) -> None:
        first, sizes = blocks.first[part.here].unsqueeze(1), blocks.sizes[part.here].unsqueeze(1)
        number = torch.arange(max(int(sizes.max()), 1))
        self.columns = (first + number).clamp_(max=part.columns - 1)
        near = part.values.gather(1, self.columns).mul_(sign).masked_fill_(number >= sizes, -FAR)
        if part.own is not None:
            near.scatter_(1, part.own - first, -FAR)
        farthest = near.amax(1, keepdim=True)
        farthest = torch.where(farthest == -FAR, 0.0, farthest)
        # the farthest positive is taken off before the margin is added, whose rounding would flip triplets
        self.thresholds = near.sub_(farthest).add_(margin)
        out = take(*part.values.shape, dtype=near.dtype)
        self.apart = torch.mul(part.values, sign, out=out).sub_(farthest)
        self.apart[:, part.band].add_(part.same, alpha=FAR)
        self.slopes = take(*self.apart.shape, dtype=near.dtype)
        if len(number) <= _FEW:
            self._compare()
        else:
            self.thresholds, order = self.thresholds.sort(1)
            self.columns = self.columns.gather(1, order)
            self._search()
        self._sum()
