"""Differences of distances over all triplets: their histogram, and weights read from one, in blocks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

from losslib.block_triplets import columns_of
from losslib.distances.exact import widen
from losslib.pair_matrix import Pairs
from losslib.triplets import joined


class TripletDifferences:
    """d_ap - d_an of every triplet of a batch, as constants: nothing of their number is ever kept.

    Without an index tuple each anchor's negatives are sorted, and a search for the edges of the bins, one for
    each positive, counts the triplets of every bin.

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
            self.kept = torch.arange(self.columns.shape[1], device=self.columns.device) < self.positive.sum(
                1, keepdim=True
            )

    def histogram(self) -> Tensor:
        """Number of triplets at each node between bins, each shared by the two beside it, (bins + 1,)."""
        nodes = widen(self.separation.new_zeros(self.bins + 1))[0]
        if self.listed is not None:
            difference = self._differences(*self.listed)
            place, below = self._bins(difference)
            share = (place - below).clamp(0, 1).to(nodes.dtype)
            nodes = nodes.index_add(0, below.long(), 1 - share)
            return nodes.index_add(0, below.long() + 1, share)
        for at in self._rows():
            nodes = nodes + self._nodes(at)
        known = self.separation.isnan().any().logical_not()  # else the comparisons mean nothing
        return torch.where(known, nodes, torch.nan)

    def weights(self, table: Tensor) -> Tensor:
        """Sum over triplets of the table's entry at the difference, + for a pair as positive, - as negative.

        table: (bins + 1,), read at the node below a difference. Returns (B, R).
        """
        total = torch.zeros_like(self.separation)
        table = table.to(total.dtype)
        if self.listed is not None:
            anchors, positives, negatives = self.listed
            below = self._bins(self._differences(*self.listed))[1].long()
            total = total.index_put((anchors, positives), table[below], accumulate=True)
            return total.index_put((anchors, negatives), -table[below], accumulate=True)
        blocks = [self._weights(at, table) for at in self._rows()]
        return torch.cat(blocks) if blocks else total

    def _differences(self, anchors: Tensor, positives: Tensor, negatives: Tensor) -> Tensor:
        return self.separation[anchors, positives] - self.separation[anchors, negatives]

    def _bins(self, difference: Tensor) -> tuple[Tensor, Tensor]:
        """Place of each difference in bins, and the bin that holds it: the one above on an edge.

        NaN keeps its place NaN, and its bin is any.
        """
        place = (difference - self.low) / self.width
        return place, (place + self._rounding).nan_to_num(0.0).floor().clamp(0, self.bins - 1)

    @property
    def _rounding(self) -> float:
        return 16 * torch.finfo(self.separation.dtype).eps  # a difference of 0 is on an edge

    def _rows(self) -> Iterator[slice]:
        """Blocks of rows whose edges and sorted negatives are no larger than a matrix, or `_BLOCK`."""
        rows, width = self.separation.shape
        each = 4 * max(1, width + self.columns.shape[1] * (self.bins + 1))
        step = max(1, max(_BLOCK, rows * width) // each)
        return (slice(at, at + step) for at in range(0, rows, step))

    def _sorted(self, at: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of a block of rows, in double precision: positives (b, m), negatives from the nearest on (b, R) and
        then infinity, their columns, and the number of negatives in reach of each edge (b, m, bins + 1):
        those whose triplets lie in bin k or above, for k from 0 to `bins`."""
        values = widen(self.separation[at])[0]
        near = values.gather(1, self.columns[at])
        far, order = values.masked_fill(self.negative[at].logical_not(), torch.inf).sort(1)
        edges = torch.arange(self.bins + 1, device=values.device, dtype=values.dtype)
        reach = (near - self.low).unsqueeze(2) - (edges - self._rounding) * self.width
        within = torch.searchsorted(far, reach.flatten(1), right=True).view_as(reach)
        return near, far, order, within * self.kept[at].unsqueeze(2)

    def _nodes(self, at: slice) -> Tensor:
        """Share of a block of rows in each node, (bins + 1,)."""
        near, far, _, within = self._sorted(at)
        number = self.negative[at].sum(1, keepdim=True)
        before = F.pad(far.masked_fill(far.isinf(), 0).cumsum(1), (1, 0))
        reached = before.gather(1, within.flatten(1)).view(within.shape)  # sum of the negatives in reach
        count = (within[:, :, :-1] - within[:, :, 1:]).to(far.dtype)
        edges = torch.arange(self.bins, device=far.device, dtype=far.dtype)
        place = ((near - self.low) / self.width).unsqueeze(2) - edges
        beyond = count * place - (reached[:, :, :-1] - reached[:, :, 1:]) / self.width
        # rounding at an edge may leave a sum just outside
        beyond = torch.minimum(beyond.clamp_min(0), count).sum((0, 1))
        count = count.sum((0, 1))
        nodes = torch.zeros(self.bins + 1, dtype=far.dtype, device=far.device)
        nodes[:-1] = count - beyond
        nodes[1:] += beyond
        nodes[0] += (number * self.kept[at] - within[:, :, 0]).sum()
        nodes[-1] += within[:, :, -1].sum()
        return nodes

    def _weights(self, at: slice, table: Tensor) -> Tensor:
        """`weights` of a block of rows."""
        _, far, order, within = self._sorted(at)
        within = within[:, :, 1:-1]  # the first and last bin take what lies beyond them
        steps = (table[1:-1] - table[:-2]).to(far.dtype)
        kept = self.kept[at].to(far.dtype)
        of_near = (within.to(far.dtype) @ steps + table[0] * self.negative[at].sum(1, keepdim=True)) * kept
        # the n-th negative is in reach of an edge that reaches more than n of them
        reaching = torch.zeros(len(far), far.shape[1] + 1, dtype=far.dtype, device=far.device)
        reaching.scatter_add_(1, within.flatten(1), (kept.unsqueeze(2) * steps).flatten(1))
        over = reaching.flip(1).cumsum(1).flip(1)[:, 1:] + table[0] * kept.sum(1, keepdim=True)
        total = torch.zeros_like(far).scatter_(1, order, -over)
        total = total * self.negative[at].to(far.dtype)
        return total.scatter_add_(1, self.columns[at], of_near).to(self.separation.dtype)


_BLOCK = 1 << 18  # numbers in memory at a time, or one matrix where that is more
