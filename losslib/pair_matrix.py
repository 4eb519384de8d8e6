"""What a pair loss sees: a matrix of distances, and which of its entries are positive or negative pairs."""

from __future__ import annotations

from typing import overload

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.inputs import Batch, Indices
from losslib.pairs import label_masks
from losslib.terms import DenseTerm, IndexedTerm, Term
from losslib.triplets import joined, sampled
from losslib.types import PairIndices, TripletIndices


class Pairs:
    """Distances (or similarities) of B anchors to R references, with the positive and negative pairs.

    Attributes:
        values: matrix (B, R) of the loss's distance.
        batch: the checked inputs.
        distance: the distance that made the values.
    """

    def __init__(self, values: Tensor, batch: Batch, distance: Distance) -> None:
        self.values, self.batch, self.distance = values, batch, distance
        self.listed = as_pairs(batch.indices)
        self._masks: tuple[Tensor, Tensor] | None = None

    @property
    def positive(self) -> Tensor:
        """Mask (B, R) of the positive pairs; a pair given twice is one entry."""
        return self._both_masks()[0]

    @property
    def negative(self) -> Tensor:
        """Mask (B, R) of the negative pairs; a pair given twice is one entry."""
        return self._both_masks()[1]

    def _both_masks(self) -> tuple[Tensor, Tensor]:
        if self._masks is None:
            if self.listed is None:
                self._masks = batch_masks(self.batch)
            else:
                self._masks = (self._mask(*self.listed[:2]), self._mask(*self.listed[2:]))
        return self._masks

    def replace_masks(self, positive: Tensor, negative: Tensor) -> None:
        """Take these masks (B, R), less each sample with itself, where labels are no names of classes."""
        own = self.batch.own
        for mask in (positive, negative):
            if self.batch.ref_emb is None:
                mask.fill_diagonal_(False)
            elif own is not None:
                mask.scatter_(1, own.unsqueeze(1), value=False)
        self._masks = (positive, negative)

    def _mask(self, anchors: Tensor, others: Tensor) -> Tensor:
        mask = torch.zeros(self.values.shape, dtype=torch.bool, device=self.values.device)
        return mask.index_put((anchors, others), torch.ones_like(anchors, dtype=torch.bool))

    @property
    def positive_count(self) -> Tensor:
        """How often each entry is a positive pair, (B, R): the mask, or counts where pairs were given."""
        return self.positive if self.listed is None else self._times(*self.listed[:2])

    @property
    def negative_count(self) -> Tensor:
        """How often each entry is a negative pair, (B, R)."""
        return self.negative if self.listed is None else self._times(*self.listed[2:])

    def _times(self, anchors: Tensor, others: Tensor) -> Tensor:
        times = torch.zeros(self.values.shape, dtype=torch.int64, device=self.values.device)
        return times.index_put((anchors, others), torch.ones_like(anchors), accumulate=True)

    @property
    def similarity(self) -> Tensor:
        """The values as a similarity (B, R): themselves, or a distance negated."""
        return self.values if self.distance.is_inverted else -self.values

    @property
    def separation(self) -> Tensor:
        """The values as a distance (B, R): themselves, or a similarity negated."""
        return -self.values if self.distance.is_inverted else self.values

    def between_references(self) -> Tensor:
        """Matrix (R, R) of values among the references."""
        if self.batch.ref_emb is None:
            return self.values
        result: Tensor = self.distance(self.batch.ref_emb)
        return result

    def over_positives(self, values: Tensor, where: Tensor | None = None, non_negative: bool = False) -> Term:
        """One term per positive pair, from a matrix (B, R).

        where: restricts the pairs to a mask (B, R). non_negative: no value is below 0 (saves a pass).
        """
        if self.listed is None:
            mask = self.positive if where is None else self.positive & where
            return DenseTerm(values, mask, non_negative=non_negative)
        return _gathered(values, self.listed.pos_anchors, self.listed.positives, where)

    def over_negatives(self, values: Tensor, where: Tensor | None = None, non_negative: bool = False) -> Term:
        """One term per negative pair, from a matrix (B, R); arguments as for the positives."""
        if self.listed is None:
            mask = self.negative if where is None else self.negative & where
            return DenseTerm(values, mask, non_negative=non_negative)
        return _gathered(values, self.listed.neg_anchors, self.listed.negatives, where)

    def over_pairs(self, of_positives: Tensor, of_negatives: Tensor) -> Term:
        """One term per positive or negative pair, jointly, from two matrices (B, R)."""
        if self.listed is None:
            return DenseTerm(
                torch.where(self.positive, of_positives, of_negatives), self.positive | self.negative
            )
        near = _gathered(of_positives, self.listed.pos_anchors, self.listed.positives, None)
        far = _gathered(of_negatives, self.listed.neg_anchors, self.listed.negatives, None)
        places = tuple(torch.cat(both) for both in zip(near.indices, far.indices, strict=True))
        return IndexedTerm(torch.cat([near.losses, far.losses]), places)

    def triplets(self, per_anchor: int | str) -> TripletIndices | None:
        """The triplets given, or `per_anchor` drawn for each anchor; None means all those of the masks."""
        if self.batch.indices is not None:
            return joined(self.batch.indices)
        if isinstance(per_anchor, str):
            return None
        return sampled(self.positive, self.negative, per_anchor)

    def over_anchors(self, values: Tensor, where: Tensor) -> Term:
        """One term per anchor of a mask (B,), from values (B,)."""
        return DenseTerm(values, where)


def batch_masks(batch: Batch) -> tuple[Tensor, Tensor]:
    """Masks (B, R) of the positive and negative pairs of a batch: those given, else those of its labels."""
    if batch.masks is not None:
        masks = (batch.masks.positive.clone(), batch.masks.negative.clone())
    else:
        masks = label_masks(batch.labels, batch.reference_labels, batch.ref_emb is None)
    if batch.own is not None:
        for mask in masks:
            mask.scatter_(1, batch.own.unsqueeze(1), value=False)
    return masks


@overload
def as_pairs(indices: None) -> None: ...
@overload
def as_pairs(indices: Indices) -> PairIndices: ...
def as_pairs(indices: Indices | None) -> PairIndices | None:
    """An index tuple as pairs: a triplet gives its positive and its negative pair."""
    if isinstance(indices, TripletIndices):
        return PairIndices(indices.anchors, indices.positives, indices.anchors, indices.negatives)
    return indices


def _gathered(values: Tensor, anchors: Tensor, others: Tensor, where: Tensor | None) -> IndexedTerm:
    if where is not None:
        kept = where[anchors, others]
        anchors, others = anchors[kept], others[kept]
    return IndexedTerm(values[anchors, others], (anchors, others))
