"""TripletMarginLoss over all triplets in blocks of whole rows: with references, and of squared distances."""

from __future__ import annotations

from typing import Any

import torch

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_triplets import Triplets
from losslib.kernels.function import Found, Inputs
from losslib.kernels.row_blocks import FAR, Part, RowBlocks


def triplets(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """TripletMarginLoss."""
    blocks = RowBlocks(loss, x, batch, needs)
    total, active, sign = 0.0, 0.0, -1.0 if blocks.inverted else 1.0
    for part in blocks.parts():
        found = _OfPart(blocks, part, loss.margin, sign)
        total += found.total
        active += found.active
        if found.active and any(needs):
            blocks.pull(part, found.slope())
    every = float(blocks.positives.double() @ blocks.negatives.double())
    each = reduce.each(loss.reducer, every, active)
    return Found(x.embeddings.new_tensor(total * each), *blocks.gradients([sign * each]))


class _OfPart(Triplets):
    """The triplets of a block of anchors; a row and a class that is not among the references have none."""

    def __init__(self, blocks: RowBlocks, part: Part, margin: float, sign: float) -> None:
        first, sizes = blocks.first[part.here].unsqueeze(1), blocks.sizes[part.here].unsqueeze(1)
        number = torch.arange(max(int(sizes.max()), 1))
        self.columns = (first + number).clamp_(max=part.columns - 1)
        near = part.values.gather(1, self.columns).mul_(sign).masked_fill_(number >= sizes, -FAR)
        if part.own is not None:
            near.scatter_(1, part.own - first, -FAR)
        separation = part.values if sign > 0 else part.values.neg()
        self.place(separation, near, margin)
        self.apart[:, part.band].add_(part.same, alpha=FAR)
        self.count(none=0)
