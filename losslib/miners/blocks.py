"""Triplets chosen block by block, so that nothing larger than a block of them is held beside the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from losslib.miners.base import Candidates
from losslib.miners.capped import drawn
from losslib.types import TripletIndices

_BLOCK = 1 << 18  # comparisons at a time, or four rows of the matrix where those are more


def chosen_triplets(
    candidates: Candidates, choose: Callable[[Tensor, Tensor], Tensor], per_anchor: int | str
) -> TripletIndices:
    """The triplets of all positive pairs with those negatives that `choose` picks, at most so many an anchor.

    choose: from the anchors (b,) and positives (b,) of a block of positive pairs to a mask (b, R) of the
    negatives wanted; entries that are not negatives of the anchor do not matter.
    """
    pairs = candidates.positives()
    size = max(4, _BLOCK // max(candidates.values.shape[1], 1))

    def chosen(a: Tensor, p: Tensor) -> Tensor:
        return choose(a, p) & candidates.negative[a]

    if not isinstance(per_anchor, str):
        return _some(pairs, size, chosen, per_anchor, len(candidates.values))
    found: list[tuple[Tensor, ...]] = []
    for part in _parts(len(pairs[0]), size):
        a, p = pairs[0][part], pairs[1][part]
        pair, negative = chosen(a, p).nonzero(as_tuple=True)
        found.append((a[pair], p[pair], negative))
    if not found:
        return TripletIndices(*pairs, pairs[0].clone())
    return TripletIndices(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _some(
    pairs: tuple[Tensor, Tensor],
    size: int,
    chosen: Callable[[Tensor, Tensor], Tensor],
    most: int,
    rows: int,
) -> TripletIndices:
    """Count each pair's triplets, draw numbers among those of an anchor, and look up what they stand for."""
    anchors, positives = pairs
    if not len(anchors):
        return TripletIndices(*pairs, anchors.clone())
    # results written in one place: small tensors left among freed large ones would keep those from reuse
    counts = torch.empty_like(anchors)
    for part in _parts(len(anchors), size):
        torch.sum(chosen(anchors[part], positives[part]), 1, out=counts[part])
    ends = counts.cumsum(0)
    of_anchor = counts.new_zeros(rows).index_add_(0, anchors, counts)
    owner, number = drawn(of_anchor, most)
    place = ((of_anchor.cumsum(0) - of_anchor)[owner] + number).sort().values
    pair = torch.searchsorted(ends, place, right=True)
    nth = place - (ends - counts)[pair]
    anchors, positives, negatives = anchors[pair], positives[pair], torch.empty_like(pair)
    for part in _parts(len(pair), size):
        so_far = chosen(anchors[part], positives[part]).cumsum(1, dtype=torch.int32)
        nth_of = (nth[part] + 1).to(torch.int32).unsqueeze(1)
        negatives[part] = torch.searchsorted(so_far, nth_of).squeeze(1)
    return TripletIndices(anchors, positives, negatives)


def _parts(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))
