"""TripletMarginLoss over all triplets in blocks of whole rows: with references, and of squared distances."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import reduce
from losslib.kernels.blocked_triplets import Triplets
from losslib.kernels.function import Found, Inputs
from losslib.kernels.row_blocks import FAR, Part, RowBlocks
from losslib.kernels.scratch import upright


def triplets(loss: Any, x: Inputs, batch: Batch, needs: tuple[bool, ...]) -> Found:
    """TripletMarginLoss."""
    blocks = RowBlocks(loss, x, batch, needs, room=upright)
    total, active = 0.0, 0.0
    for part in blocks.parts():
        found = _OfPart(blocks, part, loss.margin)
        total += found.total
        active += found.active
        if found.active and any(needs):
            blocks.pull(part, found.slope())
    every = float(blocks.positives.double() @ blocks.negatives.double())
    each = reduce.each(loss.reducer, every, active)
    return Found(
        x.embeddings.new_tensor(total * each), *blocks.gradients([-each if blocks.inverted else each])
    )


class _OfPart(Triplets):
    """The triplets of a block of anchors; a row and a class that is not among the references have none."""

    def __init__(self, blocks: RowBlocks, part: Part, margin: float) -> None:
        super().__init__(part.without_own(part.values, -FAR if blocks.inverted else FAR), blocks.inverted)
        part.without_own(self.apart, -FAR)
        first, sizes = blocks.first[part.here].unsqueeze(1), blocks.sizes[part.here].unsqueeze(1)
        number = torch.arange(max(int(sizes.max()), 1))
        self.columns = (first + number).clamp_(max=part.columns - 1)
        near = self.apart.gather(1, self.columns).add_(margin).masked_fill_(number >= sizes, 0.0)
        self.apart[:, part.band].add_(part.same, alpha=2 * FAR)
        self.count(near, none=0)

    def slope(self) -> Tensor:
        """The derivative of the sum by each distance, (b, R)."""
        return self.slopes.scatter_add_(1, self.columns, self.of_positive)
