"""Generalised end-to-end loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.base import BaseLoss
from losslib.distances import CosineSimilarity
from losslib.inputs import Batch
from losslib.learned import TensorParam, at_precision, hold
from losslib.params import Choice, Param, finite, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import DenseTerm, Term
from losslib.types import Paper

LEAST_SCALE = 1e-6


class GE2ELoss(BaseLoss):
    """Asks each row to be more similar to the centroid of its class's other rows than to all other centroids.

    Centroids of several rows are steadier than single positives; two rows a class make it a pair loss. The
    scale is learned and grows as classes part, which sharpens the softmax. The contrast variant looks at the
    nearest wrong centroid only.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the rows that have a centroid of their class without themselves (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity, ValueError for an index tuple, and where `scale` or `bias` does
    not match the embeddings' device and dtype outside autocast.

    Terms: `loss`, one value per row that shares its class with another row (of the reference, where there is
    one: its classes' centroids take every row in). Without other classes a row's softmax term is 0.

    Numerics: the centroids stand at each of their rows, weighed by one over their number, so that no loop
    goes over classes; one shifted log-sum-exp a row. The scale counts as at least 1e-6.

    Differs from the paper: a mean over the rows, not a sum. In the softmax variant the bias cancels, and it
    is not a parameter.

    Example: similarity 1 to the own centroid, 0 to one other, scale 1: log(1 + exp(-1)) = 0.3133.
    """

    title = "GE2E"
    summary = "Asks each row to be more similar to its own class's centroid than to all other centroids."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Wan, Wang, Papir, Lopez Moreno",
        2018,
        "Generalized End-to-End Loss for Speaker Verification",
        "https://arxiv.org/abs/1710.10467",
    )
    equation = (
        r"-S_{i,y_i} + \log \sum_k \exp S_{i,k}"
        r" \quad \text{or} \quad 1 - \sigma(S_{i,y_i}) + \max_{k \ne y_i} \sigma(S_{i,k}),"
        r" \quad S_{i,k} = w \cos(x_i, c_k) + b"
    )
    default_distance = CosineSimilarity
    needs_similarity = True

    variant = Param(
        "softmax",
        valid=Choice("softmax", "contrast"),
        explore=("softmax", "contrast"),
        meaning="whether all wrong centroids count, or the nearest one",
        larger="contrast looks at the hardest class only",
        fixed=True,
    )
    scale = TensorParam(
        10.0,
        valid=positive,
        explore=(1.0, 50.0),
        symbol="w",
        meaning="learned factor of the similarities, its first value",
        larger="leaves the gradient to the rows nearest to a wrong centroid",
    )
    bias = TensorParam(
        -5.0,
        valid=finite,
        explore=(-10.0, 0.0),
        symbol="b",
        meaning="what is added to every similarity, its first value where it is learned",
        larger="expects rows to be nearer to their centroids",
    )

    def prepare(self) -> None:
        """Make the learned scale, and the bias, learned in the contrast variant."""
        hold(self, "scale", 1, learn=True)
        hold(self, "bias", 1, learn=self.variant == "contrast")

    def read(self, *given: Any) -> Batch:
        """The inputs, checked. Raises ValueError for an index tuple."""
        batch = super().read(*given)
        if batch.indices is not None:
            raise ValueError("GE2ELoss: takes no indices_tuple, because its centroids are those of classes")
        return batch

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "" if has_reference else "its centroids are means over the whole batch"

    def compute(self, batch: Batch) -> dict[str, Term]:
        """`loss` per row with a centroid of its class."""
        own, there = self._own(batch)
        others, weight = self._others(batch)
        if self.variant == "softmax":
            return {"loss": DenseTerm(softplus(logsumexp_over(others, weight) - own), there)}
        wrong = others.masked_fill(weight == 0, -torch.inf)
        nothing = wrong.new_full((len(wrong), 1), -torch.inf)
        hardest = torch.cat([wrong, nothing], 1).amax(1).sigmoid()
        return {"loss": DenseTerm(1 - own.sigmoid() + hardest, there)}

    def _own(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logit of each row and the centroid of its class without itself (B,), and where there is one."""
        same = self._same(batch.labels, batch.reference_labels, batch)
        if (itself := batch.itself) is not None:
            same = same - itself.to(same.dtype)
        centroids = self._means(same, batch)
        logits = self._logits(self.distance.pairwise(batch.embeddings, centroids), batch)
        return logits, same.sum(1) > 0

    def _others(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Logits of each row and the centroid of each reference's class, and its weight, both (B, R)."""
        classes = self._same(batch.reference_labels, batch.reference_labels, batch)
        logits = self._logits(self.distance(batch.embeddings, self._means(classes, batch)), batch)
        other = 1 - self._same(batch.labels, batch.reference_labels, batch)
        return logits, other / classes.sum(1).clamp_min(1)

    def _means(self, members: Tensor, batch: Batch) -> Tensor:
        """Mean of the normalised references that each row of a mask lists."""
        rows: Tensor = self.distance.normalize(batch.references)
        return members @ rows / members.sum(1, keepdim=True).clamp_min(1)

    def _logits(self, similarity: Tensor, batch: Batch) -> Tensor:
        scale = at_precision(self, "scale", batch).clamp_min(LEAST_SCALE)
        return scale * similarity + at_precision(self, "bias", batch)

    @staticmethod
    def _same(labels: Tensor | None, others: Tensor | None, batch: Batch) -> Tensor:
        assert labels is not None
        assert others is not None
        return (labels.unsqueeze(1) == others).to(batch.embeddings.dtype)
