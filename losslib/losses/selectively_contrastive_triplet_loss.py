"""Selectively contrastive triplet loss."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.block_triplets import BlockTripletsTerm, Slopes, TripletBlock
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, non_negative, positive
from losslib.softmax import softplus
from losslib.terms import IndexedTerm, Term
from losslib.triplets import PER_ANCHOR
from losslib.types import Mark, Paper, PmlSpelling


class SelectivelyContrastiveTripletLoss(PairLoss):
    """Pushes away a negative that is nearer than the positive, and compares the two where it is not.

    In a hard triplet the positive is left alone: pulling and pushing at once moves anchor and negative the
    same way on the sphere, which is how hard triplets collapse. The push on a hard negative is the same at
    any similarity. The value jumps where a triplet turns from hard to easy.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the triplets (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per triplet; with negative similarities it may be below 0.
    `triplets_per_anchor` draws that many of each anchor's triplets with replacement, by torch's generator;
    triplets given by index are taken as they are. With a distance, the similarity is the distance negated.

    Numerics: triplets are summed in blocks. A negative as near as the positive, up to rounding, is not hard.

    Differs from the paper in taking all triplets: the paper's are each pair with its hardest negative, which
    a miner can supply. pytorch-metric-learning 2.9 has no such loss.

    Example: positive at similarity 0.4, negative at 0.7: hard, the loss is 1 * 0.7. Negative at 0.4:
    log(1 + exp(0)) = 0.6931.
    """

    title = "Selectively contrastive triplet"
    summary = "Pushes away a negative that is nearer than the positive, and compares the two where it is not."
    family = "triplet"
    activity = "softmax"
    paper = Paper(
        "Xuan, Stylianou, Liu, Pless",
        2020,
        "Hard Negative Examples are Hard, but Useful",
        "https://arxiv.org/abs/2007.12749",
    )
    equation = (
        r"\begin{cases} \lambda s_{an} & s_{an} > s_{ap} \\"
        r" \log\left[1 + e^{(s_{an} - s_{ap}) / \tau}\right] & \text{else} \end{cases}"
    )
    pml: ClassVar[PmlSpelling | None] = None
    default_distance = CosineSimilarity

    hard_weight = Param(
        1.0,
        valid=non_negative,
        explore=(0.0, 2.0),
        symbol=r"\lambda",
        meaning="weight of the negative's similarity in a hard triplet",
        larger="pushes hard negatives harder",
    )
    temperature = Param(
        0.1,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\tau",
        meaning="scale that the difference of an easy triplet is divided by",
        larger="easy triplets keep more gradient",
    )
    triplets_per_anchor = PER_ANCHOR

    @property
    def not_claimed(self) -> dict[str, str]:
        """Checks of the audit that do not hold, with reasons."""
        reasons = {"temperature": "the temperature divides the easy triplets only"}
        if self.hard_weight == 0:
            reasons["hard pairs"] = "hard triplets have a weight of 0"
        return reasons

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per triplet."""
        separation, triplets = pairs.separation, pairs.triplets(self.triplets_per_anchor)
        if triplets is None:
            return {"loss": _SelectiveTerm(self, separation, pairs.positive, pairs.negative)}
        anchors, positives, negatives = triplets
        values = self._value(separation[anchors, positives], separation[anchors, negatives])
        return {"loss": IndexedTerm(values, triplets)}

    def _value(self, near: Tensor, far: Tensor) -> Tensor:
        """The loss of triplets at these distances (similarities negated) of positive and negative."""
        violation = near - far
        hard = violation > _rounding(far.detach())
        return torch.where(hard, -self.hard_weight * far, softplus(violation / self.temperature))

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        return math.log(2.0) if bool((positives * negatives).any()) else 0.0

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: an easy negative's weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", self.temperature, r"\tau", "temperature"),)


def _rounding(far: Tensor) -> Tensor:
    """By how much a positive must be farther than a negative for the two not to be equal."""
    return 8 * torch.finfo(far.dtype).eps * far.abs()


class _SelectiveTerm(BlockTripletsTerm):
    """All triplets, their values by the loss's function of the two distances."""

    def __init__(
        self,
        loss: SelectivelyContrastiveTripletLoss,
        separation: Tensor,
        positive: Tensor,
        negative: Tensor,
    ) -> None:
        super().__init__(separation, positive, negative, 0.0, None, False)
        self.loss = loss

    def _values(self, near: Tensor, far: Tensor) -> Tensor:
        return self.loss._value(near, far)

    @property
    def has_sums(self) -> bool:
        """Always."""
        return True

    def summed(self, block: TripletBlock) -> Slopes:
        """The sums of a block: hard triplets by how many each negative has, easy ones by their softplus."""
        hard_weight, temperature = self.loss.hard_weight, self.loss.temperature
        near, far = block.near / temperature, block.far / temperature
        excess = torch.sub(near.unsqueeze(2), far.unsqueeze(1), out=block.first)
        hard = torch.gt(excess, _rounding(far).unsqueeze(1), out=block.second)
        of_hard = block.over_positives(hard)
        # exponents of hard triplets, which do not count, may be cut off, and those too small to matter
        raised = excess.clamp_(_LEAST, 1.0).exp_()
        raised.addcmul_(raised, hard, value=-1)
        sums = block.over_negatives(torch.log1p(raised, out=block.second)).mul_(block.kept).sum(1)
        chance = raised.div_(torch.add(raised, 1.0, out=block.second))
        by_near = block.over_negatives(chance).mul_(block.kept).div_(temperature)
        by_far = block.over_positives(chance).div_(-temperature).sub_(of_hard, alpha=hard_weight)
        return sums - hard_weight * (of_hard * block.far).sum(1), by_near, by_far


_LEAST = -85.0  # exponents below it are slow on some processors
