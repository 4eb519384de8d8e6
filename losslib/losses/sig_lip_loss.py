"""SigLIP, the sigmoid loss of two views."""

from __future__ import annotations

import math

import torch

from losslib.distances import CosineSimilarity
from losslib.inputs import Batch
from losslib.learned import TensorParam, at_precision, hold
from losslib.params import finite
from losslib.softmax import softplus
from losslib.terms import DenseTerm, Term
from losslib.two_views import TwoViewLoss
from losslib.types import Paper


class SigLIPLoss(TwoViewLoss):
    """Decides for every pair of rows of two views, each on its own, whether they are one sample.

    Each pair is a logistic regression on its similarity, so no pair waits for the rest of the batch. The
    bias starts low, because all pairs but one a row are negative; started at 0, the first steps only push.
    Scale and bias are learned.

    Shapes: embeddings (B, D) and ref_emb (B, D), two views of the same samples.

    Returns the mean over the rows of the sum over all pairs of a row (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity, ValueError for labels or an index tuple, and where `log_scale`
    or `bias` does not match the embeddings' device and dtype outside autocast.

    Terms: `loss`, one value per row of the first view.

    Numerics: a softplus for each pair, exact at any scale.

    Differs from pytorch-metric-learning, which has no such loss.

    Example: one row, similarity 1, scale 10, bias -10: log(1 + exp(0)) = 0.6931.
    """

    title = "SigLIP"
    summary = "Decides for every pair of rows of two views, each on its own, whether they are one sample."
    activity = "softmax"
    paper = Paper(
        "Zhai, Mustafa, Kolesnikov, Beyer",
        2023,
        "Sigmoid Loss for Language Image Pre-Training",
        "https://arxiv.org/abs/2303.15343",
    )
    equation = (
        r"-\frac{1}{B} \sum_i \sum_j \log \frac{1}{1 + \exp(z_{ij} (-e^{t'} s_{ij} - b))},"
        r" \quad z_{ij} = 2 \cdot 1_{i = j} - 1"
    )
    default_distance = CosineSimilarity
    needs_similarity = True
    not_claimed = {"no pairs": "two views of a single row are a positive pair"}  # noqa: RUF012

    log_scale = TensorParam(
        math.log(10.0),
        valid=finite,
        explore=(0.0, 5.0),
        symbol="t'",
        meaning="logarithm of the learned factor of the similarities, its first value",
        larger="leaves the gradient to the pairs that are judged wrongly",
    )
    bias = TensorParam(
        -10.0,
        valid=finite,
        explore=(-20.0, 0.0),
        symbol="b",
        meaning="what is added to every logit and learned, its first value",
        larger="expects more pairs to be positive",
    )

    def prepare(self) -> None:
        """Make the learned scale and bias."""
        hold(self, "log_scale", 1, learn=True)
        hold(self, "bias", 1, learn=True)

    def compute(self, batch: Batch) -> dict[str, Term]:
        """`loss` per row of the first view."""
        scale = at_precision(self, "log_scale", batch).exp()
        logits = scale * self.distance(batch.embeddings, batch.ref_emb) + at_precision(self, "bias", batch)
        values = softplus(logits).sum(1) - logits.diagonal()  # softplus(-l) = softplus(l) - l
        return {"loss": DenseTerm(values, torch.ones_like(values, dtype=torch.bool))}
