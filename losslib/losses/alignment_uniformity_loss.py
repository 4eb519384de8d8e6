"""Alignment and uniformity on the sphere."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from losslib.distances import Distance
from losslib.inputs import Batch
from losslib.params import Interval, Param, non_negative, positive
from losslib.softmax import logsumexp_over
from losslib.terms import DenseTerm, Term, reduced_term
from losslib.two_views import TwoViewLoss
from losslib.types import Paper


class AlignmentUniformityLoss(TwoViewLoss):
    """Brings two views together and spreads all samples evenly over the sphere.

    The two parts are what a contrastive loss tends to with many negatives, here with a weight each.
    Alignment alone collapses; uniformity alone ignores the views. The spread is felt between near samples
    only, the more so the larger t.

    Shapes: embeddings (B, D) and ref_emb (B, D), two views of the same samples.

    Returns the mean alignment plus the uniformity, the mean of both views' (0-d); uniformity needs two rows.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a similarity, ValueError for labels or an index tuple.

    Terms: `alignment_loss`, one value per row; `uniformity_loss`, already reduced, which is negative or 0.

    Numerics: exact distances; a shifted log-sum-exp over the pairs of each view.

    Differs from pytorch-metric-learning, which has no such loss.

    Example: equal views of two opposite rows, defaults: alignment 0, uniformity -2 * 4 = -8.
    """

    title = "Alignment and uniformity"
    summary = "Brings two views together and spreads all samples evenly over the sphere."
    paper = Paper(
        "Wang, Isola",
        2020,
        "Understanding Contrastive Representation Learning through Alignment and Uniformity on the "
        "Hypersphere",
        "https://arxiv.org/abs/2005.10242",
    )
    equation = (
        r"\frac{w_a}{B} \sum_i \| x_i - y_i \|^\alpha + \frac{w_u}{2} \sum_{z \in \{x, y\}}"
        r" \log \frac{2}{B (B - 1)} \sum_{i < j} \exp(-t \| z_i - z_j \|^2)"
    )
    not_claimed = {"no pairs": "two views of a single row are a positive pair"}  # noqa: RUF012

    alpha = Param(
        2.0,
        valid=Interval(1.0, math.inf, closed="left"),
        explore=(1.0, 4.0),
        symbol=r"\alpha",
        meaning="power of the distance between the views",
        larger="far views count more against near ones",
    )
    t = Param(
        2.0,
        valid=positive,
        explore=(0.5, 10.0),
        symbol="t",
        meaning="how fast the push between two samples fades with their squared distance",
        larger="spreads near samples only",
    )
    align_weight = Param(
        1.0,
        valid=non_negative,
        explore=(0.0, 5.0),
        symbol="w_a",
        meaning="weight of the alignment",
        larger="pulls the views together harder",
    )
    uniform_weight = Param(
        1.0,
        valid=non_negative,
        explore=(0.0, 5.0),
        symbol="w_u",
        meaning="weight of the uniformity",
        larger="spreads the samples harder",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError for a similarity."""
        if distance.is_inverted:
            raise TypeError(
                f"AlignmentUniformityLoss: distance must be a distance, such as LpDistance(), got "
                f"{type(distance).__name__}"
            )

    def compute(self, batch: Batch) -> dict[str, Term]:
        """`alignment_loss` per row and `uniformity_loss`."""
        x, y = batch.embeddings, batch.references
        apart = self.distance.pairwise(x, y).pow(self.alpha) * self.align_weight
        spread = (self._uniformity(x) + self._uniformity(y)) * (self.uniform_weight / 2)
        return {
            "alignment_loss": DenseTerm(apart, torch.ones_like(apart, dtype=torch.bool)),
            "uniformity_loss": reduced_term(spread),
        }

    def _uniformity(self, x: Tensor) -> Tensor:
        """Logarithm of the mean potential over the pairs of rows; 0 without any."""
        if len(x) < 2:
            return x.sum() * 0
        pairs = torch.ones(len(x), len(x), device=x.device, dtype=x.dtype).triu(1)
        potential = self.distance(x).square() * -self.t
        return logsumexp_over(potential.reshape(1, -1), pairs.reshape(1, -1)).sum() - pairs.sum().log()
