"""Differences of distances over all triplets: their histogram, and weights read from one, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from losslib.block_triplets import columns_of
from losslib.distances.exact import widen
from losslib.pair_matrix import Pairs
from losslib.triplets import joined


class TripletDifferences:
    """d_ap - d_an of every triplet of a batch, as constants: nothing of their number is ever kept.

    Args:
        pairs: the batch.
        low: the least difference; smaller ones fall into the first bin.
        width: width of a bin.
        bins: number of bins; larger differences fall into the last.
    """

    def __init__(self, pairs: Pairs, low: float, width: float, bins: int) -> None:
        self.separation = pairs.separation.detach()
        self.low, self.width, self.bins = low, width, bins
        self.listed = None if pairs.batch.indices is None else joined(pairs.batch.indices)
        if self.listed is None:
            self.positive, self.negative = pairs.positive, pairs.negative
            self.columns = columns_of(pairs.positive)

    def histogram(self) -> Tensor:
        """Number of triplets at each node between bins, each shared by the two beside it, (bins + 1,)."""
        nodes = widen(self.separation.new_zeros(self.bins + 1))[0]
        for difference, counted, *_ in self._parts():
            place, below = self._bins(difference)
            share = (place - below).clamp(0, 1).to(nodes.dtype)
            weight, below = counted.to(nodes.dtype), below.long()
            nodes = nodes.index_add(0, below.flatten(), ((1 - share) * weight).flatten())
            nodes = nodes.index_add(0, below.flatten() + 1, (share * weight).flatten())
        return nodes

    def weights(self, table: Tensor) -> Tensor:
        """Sum over triplets of the table's entry at the difference, + for a pair as positive, - as negative.

        table: (bins + 1,), read at the node below a difference. Returns (B, R).
        """
        total = torch.zeros_like(self.separation)
        table, blocks = table.to(total.dtype), []
        for difference, counted, *places in self._parts():
            below = self._bins(difference)[1].long()
            weight = table.gather(0, below.flatten()).view_as(difference) * counted.to(total.dtype)
            if self.listed is not None:
                anchors, positives, negatives = places
                total = total.index_put((anchors, positives), weight, accumulate=True)
                return total.index_put((anchors, negatives), -weight, accumulate=True)
            blocks.append((-weight.sum(1)).scatter_add(1, places[0], weight.sum(2)))
        return torch.cat(blocks) if blocks else total

    def _bins(self, difference: Tensor) -> tuple[Tensor, Tensor]:
        """Place of each difference in bins, and the bin that holds it: the one above on an edge.

        NaN keeps its place NaN, and its bin is any.
        """
        place = (difference - self.low) / self.width
        rounding = 16 * torch.finfo(place.dtype).eps  # a difference of 0 is on an edge
        return place, (place + rounding).nan_to_num(0.0).floor().clamp(0, self.bins - 1)

    def _parts(self) -> Iterator[tuple[Tensor, ...]]:
        """Differences of any shape, which of them count, and where they belong."""
        if self.listed is not None:
            anchors, positives, negatives = self.listed
            difference = self.separation[anchors, positives] - self.separation[anchors, negatives]
            yield difference, torch.ones_like(difference), anchors, positives, negatives
            return
        rows, width = self.separation.shape
        step = max(1, max(_BLOCK, rows * width) // max(1, self.columns.shape[1] * width))
        place = torch.arange(self.columns.shape[1], device=self.separation.device)
        kept = place < self.positive.sum(1, keepdim=True)
        for at in range(0, rows, step):
            length = min(step, rows - at)
            columns, values, near, far = (
                part.narrow(0, at, length) for part in (self.columns, self.separation, kept, self.negative)
            )
            difference = values.gather(1, columns).unsqueeze(2) - values.unsqueeze(1)  # (b, m, R)
            yield difference, near.unsqueeze(2) & far.unsqueeze(1), columns


_BLOCK = 1 << 16  # triplets in memory at a time, or one matrix where that is more
