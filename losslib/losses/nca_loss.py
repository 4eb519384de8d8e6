"""Neighbourhood components analysis loss."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import LpDistance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class NCALoss(PairLoss):
    """Raises the chance that a random neighbour of an anchor, drawn by nearness, is of its class.

    Any one positive near by satisfies an anchor, so a class may keep several clusters. Far positives get no
    gradient while a nearer one exists. With normalised embeddings and a scale of 1 the chances are nearly
    even and the loss flattens early; larger scales sharpen it.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the anchors with a positive (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per anchor with at least one positive, 0 without negatives. With a distance, the
    similarity is the distance negated. A pair given twice counts once.

    Numerics: a softplus of two shifted log-sum-exps, so any scale is safe.

    Differs from pytorch-metric-learning, which weighs by a miner's pairs where here only those pairs take
    part, and gives NaN without positives.

    Example: one positive at distance 0, one negative at squared distance 2, scale 1:
    log(1 + exp(-2)) = 0.1269.
    """

    title = "NCA"
    summary = "Raises the chance that a random neighbour of an anchor, drawn by nearness, is of its class."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Goldberger, Hinton, Roweis, Salakhutdinov",
        2004,
        "Neighbourhood Components Analysis",
        "https://www.cs.toronto.edu/~hinton/absps/nca.pdf",
    )
    equation = r"-\log \frac{\sum_p \exp(-\sigma d_{ap})}{\sum_{j \ne a} \exp(-\sigma d_{aj})}"
    pml = PmlSpelling("NCALoss")
    default_distance = partial(LpDistance, power=2)

    softmax_scale = Param(
        1.0,
        valid=positive,
        explore=(0.5, 30.0),
        symbol=r"\sigma",
        meaning="scale that distances are multiplied by",
        larger="only the nearest neighbours count",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per anchor with a positive."""
        logits = self.softmax_scale * pairs.similarity
        present = pairs.positive.any(1)
        near = torch.where(present, logsumexp_over(logits, pairs.positive), 0.0)
        far = logsumexp_over(logits, pairs.negative)
        return {"loss": pairs.over_anchors(softplus(far - near), present)}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        present = positives > 0
        values = (negatives / positives.clamp_min(1)).log1p() * present
        return float(values.sum() / present.sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The scale, as the temperature that it is the inverse of."""
        return (Mark("temperature", "negative", 1 / self.softmax_scale, r"1 / \sigma", "1 / scale"),)
