"""VICReg: variance, invariance and covariance."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.params import Param, non_negative, positive
from losslib.reducers import MeanReducer
from losslib.terms import DenseTerm, Term, reduced_term
from losslib.two_views import TwoViewLoss, centred
from losslib.types import Paper, PmlSpelling


class VICRegLoss(TwoViewLoss):
    """Brings two views together, keeps every coordinate spread out, and makes coordinates uncorrelated.

    It needs no negatives. The spread is a hinge: it rests once each coordinate's standard deviation is 1.
    With too small a weight of the variance everything collapses; small batches make the covariance noisy.
    Rows are not normalised.

    Shapes: embeddings (B, D) and ref_emb (B, D), two views of the same samples.

    Returns the sum of the terms, each averaged (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a `reducer`, ValueError for labels or an index tuple.

    Terms: `invariance_loss`, one value per row; `variance_loss1` and `variance_loss2`, one value per
    coordinate of each view, halved; `covariance_loss`, already reduced. With one row there is no variance
    or covariance.

    Numerics: unbiased variance of centred columns, eps inside the root.

    Differs from the paper: the two variance terms are halved, and the invariance is a mean over
    coordinates, as in the authors' code and in pytorch-metric-learning.

    Example: equal views, coordinates uncorrelated, standard deviation 1 or more: 0.
    """

    title = "VICReg"
    summary = "Brings two views together, keeps every coordinate spread out and uncorrelated."
    paper = Paper(
        "Bardes, Ponce, LeCun",
        2022,
        "VICReg: Variance-Invariance-Covariance Regularization for Self-Supervised Learning",
        "https://arxiv.org/abs/2105.04906",
    )
    equation = (
        r"\lambda \frac{1}{B D} \sum_i \| x_i - y_i \|^2"
        r" + \frac{\mu}{2 D} \sum_{z \in \{x, y\}} \sum_d"
        r" \left[1 - \sqrt{\mathrm{Var}(z_d) + \epsilon}\right]_+"
        r" + \frac{\nu}{D} \sum_{z \in \{x, y\}} \sum_{d \ne e} \mathrm{Cov}(z_d, z_e)^2"
    )
    pml = PmlSpelling("VICRegLoss")
    default_reducer = staticmethod(no_reducer)
    parts = ("embedding_regularizer", "embedding_reg_weight")
    not_claimed = {  # noqa: RUF012
        "no pairs": "two views of a single row are a positive pair",
        "huge values": "rows are not normalised, and covariances are squared: gradients are huge too",
    }

    invariance_lambda = Param(
        25.0,
        valid=non_negative,
        explore=(0.0, 50.0),
        symbol=r"\lambda",
        meaning="weight of the distance between the views",
        larger="pulls the views together harder",
    )
    variance_mu = Param(
        25.0,
        valid=non_negative,
        explore=(0.0, 50.0),
        symbol=r"\mu",
        meaning="weight of the spread of each coordinate",
        larger="guards harder against collapse",
    )
    covariance_v = Param(
        1.0,
        valid=non_negative,
        explore=(0.0, 10.0),
        symbol=r"\nu",
        meaning="weight of the covariances",
        larger="makes coordinates less redundant",
    )
    eps = Param(
        1e-4,
        valid=positive,
        explore=(1e-6, 1e-2),
        symbol=r"\epsilon",
        meaning="what is added to a variance before its root is taken",
        larger="softens the slope at collapse",
    )

    def compute(self, batch: Batch) -> dict[str, Term]:
        """The terms of both views."""
        x, y = batch.embeddings, batch.references
        rows, columns = x.shape
        # weights go before squares, which may be infinite: 0 times that would be NaN
        each = ((x - y) * math.sqrt(self.invariance_lambda / columns)).square().sum(1)
        found: dict[str, Term] = {"invariance_loss": DenseTerm(each, torch.ones_like(each, dtype=torch.bool))}
        views = centred(x), centred(y)
        for number, view in enumerate(views, 1):
            variance = view.square().sum(0) / max(rows - 1, 1)
            hinge = self.variance_mu * (1 - (variance + self.eps).sqrt()).relu() / 2
            there = torch.full_like(hinge, rows > 1, dtype=torch.bool)
            found[f"variance_loss{number}"] = DenseTerm(hinge, there)
        found["covariance_loss"] = reduced_term(self._covariance(views[0]) + self._covariance(views[1]))
        return found

    def _covariance(self, view: Tensor) -> Tensor:
        """The weighted sum of the squared covariances of centred columns, of both orders of a pair.

        What makes columns too large for their products to be numbers is taken off first.
        """
        rows, columns = view.shape
        size = (view.detach().abs().sum(0).amax() / _LARGE).clamp_min(1)
        share = math.sqrt(math.sqrt(2 * self.covariance_v / columns) / max(rows - 1, 1))
        scaled = view * (share / size)
        squares = (scaled.t() @ scaled).triu(1).square().sum()
        return squares * size * size * size * size  # one by one: 0 times infinity would be NaN

    def _reduced(self, terms: Any, embeddings: Tensor, labels: Tensor | None) -> Any:
        return _MEAN(terms, embeddings, labels)


_MEAN = MeanReducer()
_LARGE = 1e15  # size of a column up to which sums of products are numbers in single precision
