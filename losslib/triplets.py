"""Triplets as index tensors: joined from pairs, or sampled."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.inputs import Indices
from losslib.params import Choice, Either, Integer, Param
from losslib.types import PairIndices, TripletIndices

PER_ANCHOR = Param(
    "all",
    valid=Either(Integer(1), Choice("all")),
    explore=(1, 100),
    name="triplets_per_anchor",
    meaning="how many triplets of each anchor are drawn, or all",
    larger="less noise in the gradient",
)


def joined(indices: Indices) -> TripletIndices:
    """The triplets of an index tuple: its own, or every positive and negative pair that share an anchor."""
    if isinstance(indices, TripletIndices):
        return indices
    return _join(indices)


def _join(pairs: PairIndices) -> TripletIndices:
    neg_anchors, order = pairs.neg_anchors.sort(stable=True)
    negatives = pairs.negatives[order]
    first = torch.searchsorted(neg_anchors, pairs.pos_anchors)
    after = torch.searchsorted(neg_anchors, pairs.pos_anchors, right=True)
    return _expand(pairs.pos_anchors, pairs.positives, negatives, first, after - first)


def _expand(
    anchors: Tensor, positives: Tensor, negatives: Tensor, first: Tensor, counts: Tensor
) -> TripletIndices:
    """Each positive pair with `counts` entries of `negatives` from place `first` on."""
    pair = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    start = counts.cumsum(0) - counts
    within = torch.arange(len(pair), device=counts.device) - start[pair]
    return TripletIndices(anchors[pair], positives[pair], negatives[first[pair] + within])


def numbered(positive: Tensor, negative: Tensor, numbers: Tensor) -> TripletIndices:
    """The triplets with the given numbers, in the order anchor, positive, negative, of all triplets.

    positive, negative: masks (B, R). numbers: (T,), int64, each below the number of triplets.
    """
    anchors, positives = positive.nonzero(as_tuple=True)
    negatives = negative.nonzero(as_tuple=True)[1]
    per_anchor = negative.sum(1)
    first = per_anchor.cumsum(0) - per_anchor
    counts = per_anchor[anchors]
    ends = counts.cumsum(0)
    pair = torch.searchsorted(ends, numbers, right=True)
    within = numbers - (ends - counts)[pair]
    return TripletIndices(anchors[pair], positives[pair], negatives[first[anchors[pair]] + within])


def sampled(positive: Tensor, negative: Tensor, per_anchor: int) -> TripletIndices:
    """Exactly `per_anchor` triplets for each anchor that has any, uniform and with replacement.

    positive, negative: masks (B, R). Drawn by torch's own generator on the masks' device.
    """
    rows = (positive.any(1) & negative.any(1)).nonzero().squeeze(1)
    anchors = rows.repeat_interleave(per_anchor)
    drawn = [_draw(mask[rows], per_anchor).flatten() for mask in (positive, negative)]
    return TripletIndices(anchors, drawn[0], drawn[1])


def _draw(mask: Tensor, times: int) -> Tensor:
    """Columns (B, times) drawn uniformly from the True entries of each row."""
    share = torch.rand(len(mask), times, dtype=torch.float64, device=mask.device)
    rank = (share * mask.sum(1, keepdim=True)).long() + 1  # 1 .. number of entries
    return torch.searchsorted(mask.cumsum(1), rank)
