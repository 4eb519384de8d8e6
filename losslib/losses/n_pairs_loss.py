"""N-pairs loss."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import DotProductSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.softmax import logsumexp_over
from losslib.terms import Term
from losslib.types import Paper, PmlSpelling


class NPairsLoss(PairLoss):
    """Asks one positive of each class to be more similar to its anchor than those of all other classes.

    One pair of each class takes part and the rest of the batch gets no gradient: a batch of two rows a class
    wastes nothing. The similarity has no scale of its own, so on normalised embeddings the softmax stays
    nearly flat; the paper's embeddings have free norms, held by a penalty (`embedding_regularizer`).

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the classes with a positive pair (0-d).

    Raises ShapeError and TypeError for inputs.

    Terms: `loss`, one value per class with a positive pair, at its anchor: the first anchor of the class, in
    batch order, with its first positive. Of a tuple, the first pair listed of each class; without labels,
    the first of each anchor. Negatives are the chosen positives of the other classes, whatever the tuple
    lists. A single class gives a term of 0.

    The value depends on the order of the batch where a class has more than two rows: the paper defines the
    loss for batches of one pair a class and leaves that choice to the sampling.

    Numerics: one (B, B) matrix of similarities to chosen positives; shifted log-sum-exp.

    Differs from the paper in the default distance, which normalises.

    Example: two classes, each positive at similarity 1 to its anchor and at 0 to the other:
    log(1 + exp(-1)) = 0.3133.
    """

    title = "N-pairs"
    summary = "Asks one positive of each class to be more similar to its anchor than those of other classes."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Sohn",
        2016,
        "Improved Deep Metric Learning with Multi-class N-pair Loss Objective",
        "https://papers.nips.cc/paper/6200-improved-deep-metric-learning-with-multi-class-n-pair-loss-objective",
    )
    equation = r"-\log \frac{\exp(s_{a p_a})}{\sum_b \exp(s_{a p_b})}"
    pml = PmlSpelling("NPairsLoss")
    default_distance = partial(DotProductSimilarity, normalize_embeddings=True)
    not_claimed: ClassVar[dict[str, str]] = {
        "batch order": "the first pair of each class is taken, in batch order",
    }

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per class with a positive pair."""
        if pairs.values.numel() == 0:
            return {"loss": pairs.over_anchors(pairs.values.sum(1), pairs.positive.any(1))}
        chosen, partner = _first_pairs(pairs)
        to_partners = pairs.similarity.index_select(1, partner)  # (B, B): of a to the partner of b
        everything = logsumexp_over(to_partners, chosen.unsqueeze(0).expand_as(to_partners))
        values = torch.where(chosen, everything, 0.0) - to_partners.diagonal()
        return {"loss": pairs.over_anchors(values, chosen)}

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "the positive of each class is a negative of all other classes' anchors"

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, _ = pair_counts(labels)
        classes = (positives > 0).double() / (positives + 1)  # each class adds up to 1
        return float(classes.sum().round().clamp_min(1).log())


def _first_pairs(pairs: Pairs) -> tuple[Tensor, Tensor]:
    """Mask (B,) of the anchors that stand for their class, and the positive (B,) of each anchor."""
    rows = len(pairs.values)
    places = torch.arange(rows, device=pairs.values.device)
    if pairs.listed is None:
        found = pairs.positive.any(1)
        partner = pairs.positive.to(torch.uint8).argmax(1)  # the first of equal ones
    else:
        anchors, positives = pairs.listed[:2]
        number = len(anchors)
        order = torch.arange(number, device=anchors.device)
        places = torch.full_like(places, number).scatter_reduce(0, anchors, order, "amin")
        found = places < number
        # an anchor without a pair reads a filler
        partner = torch.cat([positives, positives.new_zeros(1)])[places]
    labels = pairs.batch.labels
    if labels is None:
        return found, partner
    earlier = (labels.unsqueeze(1) == labels) & found & (places < places.unsqueeze(1))
    return found & earlier.any(1).logical_not(), partner
