"""Angular loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from losslib.base import PairLoss
from losslib.distance_rules import require_unit_euclidean
from losslib.distances import Distance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Interval, Param
from losslib.softmax import softplus
from losslib.terms import Term
from losslib.types import Paper, PmlSpelling


class AngularLoss(PairLoss):
    """Bounds the angle at the negative of each triangle of anchor, positive and negative.

    The angle does not change with the size of the triangle, so classes of different spread are treated
    alike. It depends on the similarity of the negative to both other corners: a negative beside the positive
    pushes as one beside the anchor does. Every triangle keeps some gradient.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that does not give the dot products of unit rows.

    Terms: `loss`, one value per positive pair, over the negatives of its anchor. A pair whose anchor has no
    negatives is a term of 0 and counts in the mean. A negative given twice counts once. With a reference set
    the negative's similarity to the positive is one between references.

    Numerics: the sum over negatives is a matrix product of exponentials, in B x R memory; for an angle so
    wide that they would underflow, a log-sum-exp over blocks of anchors.

    Differs from pytorch-metric-learning, which leaves the negatives at their own length and takes them from
    the labels even where a tuple is given; there the memory is positives times batch.

    Example: alpha 45 degrees, positive at similarity 0.5 to its anchor, one negative at 0 to both: the
    exponent is 4 * (0 + 0) - 2 * 2 * 0.5, the loss log(1 + exp(-2)) = 0.1269.
    """

    title = "Angular"
    summary = "Bounds the angle at the negative of each triangle of anchor, positive and negative."
    family = "triplet"
    activity = "softmax"
    paper = Paper(
        "Wang, Zhou, Wen, Liu, Lin",
        2017,
        "Deep Metric Learning with Angular Loss",
        "https://arxiv.org/abs/1708.01682",
    )
    equation = (
        r"\log\Big[1 + \sum_n \exp\Big(4 \tan^2\!\alpha\, (x_a + x_p)^\top x_n"
        r" - 2 (1 + \tan^2\!\alpha)\, x_a^\top x_p\Big)\Big]"
    )
    pml = PmlSpelling("AngularLoss")

    alpha = Param(
        40.0,
        valid=Interval(0.0, 90.0, closed="neither"),
        explore=(20.0, 60.0),
        symbol=r"\alpha",
        meaning="upper bound of the angle at the negative",
        larger="weighs the negatives against the positives more heavily",
        unit="degrees",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless dot products of unit rows follow from the values."""
        require_unit_euclidean(self, distance)

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per positive pair."""
        tangent = math.tan(math.radians(self.alpha)) ** 2
        batch = pairs.batch
        dots = self._dots(pairs.values, batch.embeddings, batch.references)
        between = dots
        if batch.ref_emb is not None:
            between = self._dots(pairs.between_references(), batch.references, batch.references)
        push = _log_product(4 * tangent * dots, pairs.negative, 4 * tangent * between, 16 * tangent)
        return {"loss": pairs.over_positives(softplus(push - 2 * (1 + tangent) * dots))}

    def _dots(self, values: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """Dot products of the unit rows of x and y, from their values."""
        if self.distance.is_inverted:
            return values
        # |x - y|^2 = |x|^2 + |y|^2 - 2 x y, where a zero row has length 0
        squares = _length(x).unsqueeze(1) + _length(y)
        return (squares - values.square()) / 2

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        exponent = 6 * math.tan(math.radians(self.alpha)) ** 2 - 2
        values = softplus(negatives.log() + exponent)
        return float((positives * values).sum() / positives.sum().clamp_min(1))


def _length(x: Tensor) -> Tensor:
    """1 for each row that can be normalised, 0 for a row of zeros, (N,)."""
    return (x != 0).any(1).to(x.dtype)


def _log_product(left: Tensor, mask: Tensor, right: Tensor, span: float) -> Tensor:
    """log of the sum over n in mask[a] of exp(left[a, n] + right[p, n]), (B, R); -inf for an empty row.

    left: (B, R). mask: (B, R). right: (R, R). span: how far the exponents of a sum may lie apart.
    """
    empty = mask.any(1, keepdim=True).logical_not()
    if left.numel() == 0:
        return left
    mask = mask | empty
    if span < -math.log(torch.finfo(left.dtype).tiny) - 7:
        shift, other = left.detach().amax(1, keepdim=True), right.detach().amax(1, keepdim=True)
        product = ((left - shift).exp() * mask.to(left.dtype)) @ (right - other).exp().t()
        found = product.log() + shift + other.t()
    else:
        found = _in_blocks(left.masked_fill(mask.logical_not(), -torch.inf), right)
    return found.masked_fill(empty, -torch.inf)


def _in_blocks(left: Tensor, right: Tensor) -> Tensor:
    """The same by log-sum-exp, a block of anchors at a time; each is computed again for its gradient."""
    step = max(1, _BLOCK // right.numel())
    blocks = [left.narrow(0, at, min(step, len(left) - at)) for at in range(0, len(left), step)]
    return torch.cat(
        [checkpoint(_block, part, right, use_reentrant=False, preserve_rng_state=False) for part in blocks]
    )


def _block(left: Tensor, right: Tensor) -> Tensor:
    return torch.logsumexp(left.unsqueeze(1) + right, dim=2)


_BLOCK = 1 << 20  # exponents in memory at a time
