"""The base of every miner: options, the call, and which pairs there are to choose from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from losslib.declared import Declared
from losslib.distances import Distance, LpDistance
from losslib.errors import ShapeError
from losslib.inputs import Batch, Indices, read
from losslib.miners.capped import at_most
from losslib.pair_matrix import batch_masks
from losslib.pairs import PairMasks
from losslib.params import Choice, Either, Integer, Param
from losslib.precision import without_autocast
from losslib.types import PairIndices, TripletIndices

CAP = Param(
    "all",
    valid=Either(Integer(1), Choice("all")),
    explore=(1, 100),
    meaning="how many triplets, or positive and negative pairs each, of one anchor are kept, or all",
    larger="more tuples, more memory",
)


@dataclass
class Candidates:
    """The pairs that a miner chooses from.

    Attributes:
        values: matrix (B, R) of the miner's distance.
        separation: the values as a distance: themselves, or a similarity negated.
        positive: mask (B, R) of the positive pairs, without self pairs.
        negative: mask (B, R) of the negative pairs.
        batch: the checked inputs, without their graph.
    """

    values: Tensor
    separation: Tensor
    positive: Tensor
    negative: Tensor
    batch: Batch

    def positives(self, where: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Anchors and positives, of a mask (B, R) or all."""
        anchors, others = (self.positive if where is None else self.positive & where).nonzero(as_tuple=True)
        return anchors, others

    def negatives(self, where: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Anchors and negatives, of a mask (B, R) or all."""
        anchors, others = (self.negative if where is None else self.negative & where).nonzero(as_tuple=True)
        return anchors, others

    def pairs(self, of_positives: Tensor, of_negatives: Tensor) -> PairIndices:
        """The positive pairs of one mask and the negative pairs of another, both (B, R)."""
        return PairIndices(*self.positives(of_positives), *self.negatives(of_negatives))


class Miner(Declared, nn.Module):
    """Chooses pairs or triplets of a batch. A subclass declares its options and implements `mine`.

    Called as `miner(embeddings, labels, ref_emb=None, ref_labels=None)`. Every result has the right label
    relation and no self pair, and may be empty. Nothing is differentiated. Keyword-only option of every
    miner: `distance`. Each miner has `tuples_per_anchor`, sampled by torch's generator.
    """

    summary: ClassVar[str]
    default_distance: ClassVar[Callable[[], Distance]] = LpDistance
    parts: ClassVar[tuple[str, ...]] = ("distance",)

    distance: Distance
    tuples_per_anchor: Any

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__()
        given = self._take_options(values, options).get("distance")
        self.distance = type(self).default_distance() if given is None else given
        self.prepare()

    def prepare(self) -> None:
        """Called once all options are set: refuse combinations."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "distance":
            self.check_distance(value)
        super().__setattr__(name, value)

    def check_distance(self, distance: Any) -> None:
        """Raise TypeError for what the miner cannot use as its distance."""
        if not isinstance(distance, Distance):
            raise TypeError(f"{type(self).__name__}: distance must be a Distance, got {distance!r}")

    def mine(self, candidates: Candidates) -> Indices:
        """The pairs or triplets chosen, before the cap."""
        raise NotImplementedError

    @torch.no_grad()
    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | PairMasks,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
        own: Tensor | None = None,
    ) -> Indices:
        """Index tensors of the pairs or triplets chosen, for a loss's `indices_tuple`.

        Args:
            embeddings: (B, D), floating; the anchors.
            labels: (B,), compared by equality; or the `PairMasks` of another rule of `losslib.pairs`, which
                then says which pairs there are to choose from.
            ref_emb: (R, D); positives and negatives come from it, nothing is excluded.
            ref_labels: (R,).
            own: (B,) int64, the reference row that is a copy of each anchor, which is then no candidate.

        Raises ShapeError or TypeError for inputs that do not fit.
        """
        owner = type(self).__name__
        if labels is None:
            raise ShapeError(f"{owner}: labels must be a tensor of shape (B,), got None")
        masks = labels if isinstance(labels, PairMasks) else None
        names = None if isinstance(labels, PairMasks) else labels
        batch = read(owner, embeddings.detach(), names, masks, ref_emb, ref_labels, dense=True)
        with without_autocast(embeddings):
            return self._capped(self.mine(self._candidates(batch, own)))

    def _candidates(self, batch: Batch, own: Tensor | None) -> Candidates:
        batch.own = own
        values = self.distance(batch.embeddings, batch.ref_emb)
        positive, negative = batch_masks(batch)
        known = values.isnan().logical_not_()  # what is not a number is neither near nor far
        largest = torch.finfo(values.dtype).max
        values = values.clamp(-largest, largest)  # leaves infinity free to mark what is no candidate
        separation = -values if self.distance.is_inverted else values
        return Candidates(values, separation, positive & known, negative & known, batch)

    def _capped(self, indices: Indices) -> Indices:
        limit = self.tuples_per_anchor
        if isinstance(limit, str):
            return indices
        if isinstance(indices, TripletIndices):
            kept = at_most(indices.anchors, limit)
            return TripletIndices(*(index[kept] for index in indices))
        near, far = at_most(indices.pos_anchors, limit), at_most(indices.neg_anchors, limit)
        return PairIndices(*(index[near] for index in indices[:2]), *(index[far] for index in indices[2:]))

    def extra_repr(self) -> str:
        """The options, for printing."""
        return self._options_text()


def needs_euclidean(miner: Miner, distance: Any, normalised: bool) -> None:
    """Raise TypeError unless the distance is the Euclidean one (of normalised embeddings, where needed)."""
    Miner.check_distance(miner, distance)
    euclidean = isinstance(distance, LpDistance) and distance.p == 2 and distance.power == 1
    if not euclidean or (normalised and not distance.normalize_embeddings):
        wanted = "LpDistance()" if normalised else "LpDistance() with p=2 and power=1"
        raise TypeError(f"{type(miner).__name__}: distance must be {wanted}, got {distance!r}")
