"""Triplets chosen block by block, so that nothing larger than a block of them is held beside the result."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from losslib.miners.base import Candidates
from losslib.miners.capped import at_most, random_keys
from losslib.types import TripletIndices

_BLOCK = 1 << 18  # comparisons at a time, or four rows of the matrix where those are more


def chosen_triplets(
    candidates: Candidates, choose: Callable[[Tensor, Tensor], Tensor], per_anchor: int | str
) -> TripletIndices:
    """The triplets of all positive pairs with those negatives that `choose` picks, at most so many an anchor.

    choose: from the anchors (b,) and positives (b,) of a block of positive pairs to a mask (b, R) of the
    negatives wanted; entries that are not negatives of the anchor do not matter.
    """
    anchors, positives = candidates.positives()
    size = max(4, _BLOCK // max(candidates.values.shape[1], 1))
    found: list[tuple[Tensor, ...]] = []
    for a, p in zip(anchors.split(size), positives.split(size), strict=True):
        pair, negative = (choose(a, p) & candidates.negative[a]).nonzero(as_tuple=True)
        block: tuple[Tensor, ...] = (a[pair], p[pair], negative)
        found.append(
            block if isinstance(per_anchor, str) else _thinned((*block, random_keys(pair)), per_anchor)
        )
    if not found:
        return TripletIndices(anchors, positives, anchors.clone())
    whole = tuple(torch.cat(parts) for parts in zip(*found, strict=True))
    whole = whole if isinstance(per_anchor, str) else _thinned(whole, per_anchor)
    return TripletIndices(*whole[:3])


def _thinned(triplets: tuple[Tensor, ...], per_anchor: int) -> tuple[Tensor, ...]:
    """Triplets and their random keys, the smallest keys of each anchor kept."""
    kept = at_most(triplets[0], per_anchor, triplets[3])
    return tuple(part[kept] for part in triplets)
