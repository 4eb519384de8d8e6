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
        self._whole: tuple[Tensor, ...] = ()
        self.listed = None if pairs.batch.indices is None else joined(pairs.batch.indices)
        if self.listed is None:
            self.positive, self.negative = pairs.positive, pairs.negative
            self.positives = self.positive.sum(1, keepdim=True)
            self.negatives = self.negative.sum(1, keepdim=True)
            self.columns = columns_of(self.positive, self.positives)
            places = torch.arange(self.columns.shape[1], device=self.columns.device)
            self.kept = places < self.positives

    def histogram(self) -> Tensor:
        """Number of triplets at each node between bins, each shared by the two beside it, (bins + 1,)."""
        nodes = widen(self.separation.new_zeros(self.bins + 1))[0]
        if self.listed is not None:
            difference = self._differences(*self.listed)
            place, below = self._bins(difference)
            share = (place - below).clamp(0, 1).to(nodes.dtype)
            nodes = nodes.index_add(0, below.long(), 1 - share)
            return nodes.index_add(0, below.long() + 1, share)
        above = sum((self._above(at) for at in self._rows()), nodes)
        within = above[:-1] - above[1:]  # triplets beyond each bin, those in it by their share
        number = (self.positives * self.negatives).sum(0).to(nodes.dtype)
        ends = torch.cat([number, within, torch.zeros_like(number)])
        # NaN is no number of triplets: comparisons with it mean nothing
        return ends[:-1] - ends[1:] + 0 * self.separation.sum()

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

    def _sorted(self, at: slice) -> tuple[Tensor, ...]:
        """Of a block of rows, in double precision, what `_sort` finds; kept where that is the whole batch."""
        if at.start or at.stop < len(self.separation):
            return self._sort(at)
        self._whole = self._whole or self._sort(at)
        return self._whole

    def _sort(self, at: slice) -> tuple[Tensor, ...]:
        """Negatives from the nearest on (b, R) and then infinity, their columns, the distances that reach the
        edges (b, m, bins + 1), and how many negatives each reaches: those of triplets in bin k or above, for
        k from 0 to `bins`; none from what is no positive."""
        separation, negative, columns, kept = self._of(at)
        values = widen(separation)[0]
        far, order = values.masked_fill(negative.logical_not(), torch.inf).sort(1)
        edges = torch.arange(self.bins + 1, device=values.device, dtype=values.dtype)
        shift = (edges - self._rounding).mul_(self.width).add_(self.low)
        reach = values.gather(1, columns).unsqueeze(2) - shift
        within = torch.searchsorted(far, reach.flatten(1), right=True).view_as(reach)
        return far, order, reach, within * kept.unsqueeze(2)

    def _of(self, at: slice) -> tuple[Tensor, ...]:
        """Distances, negatives, columns of the positives and which of those count, of a block of rows."""
        given = self.separation, self.negative, self.columns, self.kept
        whole = at.start == 0 and at.stop >= len(self.separation)
        return given if whole else tuple(part[at] for part in given)

    def _above(self, at: slice) -> Tensor:
        """The places of a block's triplets above each edge, in bins, summed, (bins + 1,)."""
        far, _, reach, within = self._sorted(at)
        before = F.pad(far.cumsum(1), (1, 0))
        reached = before.gather(1, within.flatten(1)).view_as(reach)  # sums of the negatives in reach
        exact = reach - self._rounding * self.width
        return (exact * within - reached).sum((0, 1)) / self.width

    def _weights(self, at: slice, table: Tensor) -> Tensor:
        """`weights` of a block of rows."""
        far, order, _, within = self._sorted(at)
        _, negative, columns, kept = self._of(at)
        within = within[:, :, 1:-1]  # the first and last bin take what lies beyond them
        table, kept, negative = table.to(far.dtype), kept.to(far.dtype), negative.to(far.dtype)
        first, steps = table[0], table[1:-1] - table[:-2]
        of_near = within.to(far.dtype) @ steps + kept * (first * self.negatives[at])
        # the n-th negative is in reach of an edge that reaches more than n of them
        reaching = torch.zeros(len(far), far.shape[1] + 1, dtype=far.dtype, device=far.device)
        reaching.scatter_add_(1, within.flatten(1), (kept.unsqueeze(2) * steps).flatten(1))
        every = reaching.sum(1, keepdim=True) + first * self.positives[at]
        over = every - reaching.cumsum(1)[:, :-1]
        total = torch.empty_like(far).scatter_(1, order, over).mul_(negative).neg_()
        return total.scatter_add_(1, columns, of_near).to(self.separation.dtype)


_BLOCK = 1 << 18  # numbers in memory at a time, or one matrix where that is more
