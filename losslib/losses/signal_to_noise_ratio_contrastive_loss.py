"""Signal-to-noise-ratio contrastive loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import Distance, SNRDistance
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, finite
from losslib.reducers import AvgNonZeroReducer
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class SignalToNoiseRatioContrastiveLoss(PairLoss):
    """Pulls each positive pair inside one margin and pushes each negative pair beyond another, by noise.

    The distance is the variance of the difference over the variance of the anchor: the same difference
    counts less against an anchor with a strong signal, so it is not symmetric. A pair inside its margin
    gives no gradient. The ratio of unrelated rows is about 2: a negative margin of 1 lets many negatives go.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean of the positive pairs' hinges above 0 plus that of the negative pairs' (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for any other distance than SNRDistance.

    Terms: `pos_loss` and `neg_loss`, one value a pair.

    Numerics: exact near 0; an anchor whose entries are all equal has no signal, distance 0 and no gradient.

    Differs from the paper, which adds a penalty on each row's mean (`embedding_regularizer`).

    Example: anchor (1, -1), negative (-1, 1): the difference has variance 4 and the anchor 1, normalised or
    not; the ratio 4 lies beyond a margin of 1, the loss is 0.
    """

    title = "SNR contrastive"
    summary = "Pulls each positive pair inside one margin and pushes each negative pair beyond another."
    family = "pair"
    activity = "hinge"
    paper = Paper(
        "Yuan, Deng, Tang, Tang, Chen",
        2019,
        "Signal-to-Noise Ratio: A Robust Distance Metric for Deep Metric Learning",
        "https://arxiv.org/abs/1904.02616",
    )
    equation = (
        r"\left[\frac{\mathrm{var}(x_p - x_a)}{\mathrm{var}(x_a)} - m_{pos}\right]_+"
        r" + \left[m_{neg} - \frac{\mathrm{var}(x_n - x_a)}{\mathrm{var}(x_a)}\right]_+"
    )
    pml = PmlSpelling("SignalToNoiseRatioContrastiveLoss")
    default_distance = SNRDistance
    default_reducer = AvgNonZeroReducer

    pos_margin = Param(
        0.0,
        valid=finite,
        explore=(0.0, 1.0),
        symbol="m_{pos}",
        meaning="ratio over which a positive pair contributes",
        larger="tolerates wider classes",
        title="Positive margin",
    )
    neg_margin = Param(
        1.0,
        valid=finite,
        explore=(0.0, 4.0),
        symbol="m_{neg}",
        meaning="ratio under which a negative pair contributes",
        larger="pushes negatives further",
        title="Negative margin",
    )

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless it is the signal-to-noise-ratio distance."""
        if not isinstance(distance, SNRDistance):
            raise TypeError(
                f"{type(self).__name__}: distance must be SNRDistance(), got {distance!r}; "
                "ContrastiveLoss takes any distance"
            )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`pos_loss` per positive pair and `neg_loss` per negative pair."""
        return {
            "pos_loss": pairs.over_positives((pairs.values - self.pos_margin).relu(), non_negative=True),
            "neg_loss": pairs.over_negatives((self.neg_margin - pairs.values).relu(), non_negative=True),
        }

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        near = max(-self.pos_margin, 0.0) if positives.any() else 0.0
        return near + (max(self.neg_margin, 0.0) if negatives.any() else 0.0)

    def marks(self) -> tuple[Mark, ...]:
        """Both margins, as lines."""
        return (
            Mark("line", "positive", self.pos_margin, "m_{pos}", "positive margin"),
            Mark("line", "negative", self.neg_margin, "m_{neg}", "negative margin"),
        )
