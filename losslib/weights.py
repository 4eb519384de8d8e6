"""Pair weights: how hard a loss pushes on each distance of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.pair_matrix import Pairs

if TYPE_CHECKING:
    from losslib.base import PairLoss

_SHARE = 0.01  # of its anchor's largest weight: below it a softmax pair counts as inactive


@dataclass(frozen=True)
class PairWeights:
    """The derivative of a reduced loss by its distance matrix.

    Attributes:
        values: distances or similarities (B, R).
        weights: d(loss) / d(values), (B, R).
        positive: mask (B, R) of the positive pairs.
        negative: mask (B, R) of the negative pairs.
        rule: "hinge" or "softmax", the loss's kind of activity under its options.
    """

    values: Tensor
    weights: Tensor
    positive: Tensor
    negative: Tensor
    rule: str

    @property
    def active(self) -> Tensor:
        """Mask (B, R) of the pairs that the loss still moves.

        hinge: the weight is not 0. softmax: it exceeds 1 % of the anchor's largest.
        """
        size = self.weights.abs()
        if self.rule == "hinge" or size.numel() == 0:
            return size > 0
        return (size > _SHARE * size.amax(1, keepdim=True)) & (size > 0)

    @property
    def active_share(self) -> Tensor:
        """Share of the positive and negative pairs that are active, 0-d; NaN when there are no pairs."""
        pairs = self.positive | self.negative
        return (self.active & pairs).sum() / pairs.sum()


def weights_of(loss: PairLoss, batch: Batch) -> PairWeights:
    """The pair weights of a loss on checked inputs."""
    with torch.inference_mode(False), torch.enable_grad():
        values = loss.distance(batch.embeddings, batch.ref_emb).detach()
        values = (values.clone() if values.is_inference() else values).requires_grad_()
        pairs = Pairs(values, batch, loss.distance)
        total = loss._reduced(loss.terms(pairs), batch.embeddings.detach(), batch.labels)
        if not isinstance(total, Tensor):
            raise ValueError(
                f"{type(loss).__name__}: pair weights need a reducer that gives one number, "
                f"got {type(loss.reducer).__name__}"
            )
        (weights,) = torch.autograd.grad(total, values, allow_unused=True, materialize_grads=True)
    return PairWeights(values.detach(), weights, pairs.positive, pairs.negative, loss.activity_rule)
