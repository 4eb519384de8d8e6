"""Barlow Twins."""

from __future__ import annotations

import torch

from losslib.distances.units import unit_rows
from losslib.inputs import Batch
from losslib.params import Param, non_negative
from losslib.reducers import SumReducer
from losslib.terms import DenseTerm, Term
from losslib.two_views import TwoViewLoss, centred
from losslib.types import Paper


class BarlowTwinsLoss(TwoViewLoss):
    """Makes each coordinate agree between two views, and different coordinates uncorrelated.

    It needs no negatives, and a collapsed coordinate costs 1 rather than nothing. It has always some gradient
    while coordinates outnumber the data's independent directions. Small batches make the correlations noisy.

    Shapes: embeddings (B, D) and ref_emb (B, D), two views of the same samples.

    Returns the sum over all entries of the cross-correlation matrix (0-d), 0 with fewer than two rows.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a `reducer`, ValueError for labels or an index tuple.

    Terms: `invariance_loss`, one value per coordinate, and `redundancy_loss`, one value per coordinate of the
    first view: its correlations with all other coordinates of the second.

    Numerics: columns are centred and divided by their norm, without an epsilon. A constant column has
    correlation 0 and no gradient.

    Differs from pytorch-metric-learning, which has no such loss.

    Example: equal views with two uncorrelated coordinates: 0; with two equal ones, weight 0.005: 0.01.
    """

    title = "Barlow Twins"
    summary = "Makes each coordinate agree between two views, and different coordinates uncorrelated."
    paper = Paper(
        "Zbontar, Jing, Misra, LeCun, Deny",
        2021,
        "Barlow Twins: Self-Supervised Learning via Redundancy Reduction",
        "https://arxiv.org/abs/2103.03230",
    )
    equation = r"\sum_d (1 - C_{dd})^2 + \lambda \sum_d \sum_{e \ne d} C_{de}^2"
    default_reducer = SumReducer
    parts = ("reducer", "embedding_regularizer", "embedding_reg_weight")

    redundancy_lambda = Param(
        0.005,
        valid=non_negative,
        explore=(0.0, 0.1),
        symbol=r"\lambda",
        meaning="weight of the correlations between different coordinates",
        larger="makes coordinates less redundant",
    )

    def compute(self, batch: Batch) -> dict[str, Term]:
        """`invariance_loss` and `redundancy_loss` per coordinate."""
        x, y = batch.embeddings, batch.references
        if len(x) < 2:
            own = others = x.sum(0) * 0
            there = torch.zeros_like(own, dtype=torch.bool)
        else:
            correlation = unit_rows(centred(x).t()) @ unit_rows(centred(y).t()).t()
            own = correlation.diagonal()
            others = (correlation - own.diag_embed()).square().sum(1)
            there = torch.ones_like(own, dtype=torch.bool)
        return {
            "invariance_loss": DenseTerm((1 - own).square(), there),
            "redundancy_loss": DenseTerm(others * self.redundancy_lambda, there),
        }
