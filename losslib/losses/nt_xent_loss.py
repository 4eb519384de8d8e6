"""NT-Xent, the normalised temperature-scaled cross-entropy loss."""

from __future__ import annotations

from torch import Tensor

from losslib.base import PairLoss
from losslib.distances import CosineSimilarity
from losslib.pair_matrix import Pairs
from losslib.pairs import pair_counts
from losslib.params import Param, positive
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import Term
from losslib.types import Mark, Paper, PmlSpelling


class NTXentLoss(PairLoss):
    """Asks each positive to be more similar to its anchor than all of the anchor's negatives together.

    Every pair always has some gradient, but a low temperature leaves almost all of it to the nearest
    negatives, and a high one spreads it evenly. It does not stop at any similarity: classes contract for
    as long as it is trained. Mislabelled near neighbours hurt most at low temperatures.

    Shapes: embeddings (B, D), labels (B,), ref_emb (R, D), ref_labels (R,).

    Returns the mean over the positive pairs (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs.

    Terms: `loss`, one value per positive pair: that positive against the anchor's negatives, its other
    positives left out. A pair whose anchor has no negatives is a term of 0 and counts in the mean. With a
    distance, the similarity is the distance negated.

    Numerics: one shifted log-sum-exp an anchor, then a softplus for each positive, so any temperature is
    safe and memory is B x R.

    Differs from pytorch-metric-learning only in that: there the memory is positives times negatives and
    low temperatures under- or overflow.

    Example: one positive at similarity 1, one negative at 0, temperature 1: log(1 + exp(-1)) = 0.3133.
    """

    title = "NT-Xent"
    summary = "Asks each positive to be more similar to its anchor than all the anchor's negatives together."
    family = "softmax"
    activity = "softmax"
    paper = Paper(
        "Chen, Kornblith, Norouzi, Hinton",
        2020,
        "A Simple Framework for Contrastive Learning of Visual Representations",
        "https://arxiv.org/abs/2002.05709",
    )
    equation = r"-\log \frac{\exp(s_{ap} / \tau)}{\exp(s_{ap} / \tau) + \sum_n \exp(s_{an} / \tau)}"
    pml = PmlSpelling("NTXentLoss")
    default_distance = CosineSimilarity

    temperature = Param(
        0.07,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\tau",
        meaning="scale that similarities are divided by",
        larger="spreads the push over more negatives",
    )

    def terms(self, pairs: Pairs) -> dict[str, Term]:
        """`loss` per positive pair."""
        logits = pairs.similarity / self.temperature
        negatives = logsumexp_over(logits, pairs.negative_count).unsqueeze(1)
        return {"loss": pairs.over_positives(softplus(negatives - logits))}

    def value_at_collapse(self, labels: Tensor) -> float:
        """The loss when all embeddings are one unit vector, under the default reducer; labels (B,)."""
        positives, negatives = pair_counts(labels)
        return float((positives * negatives.log1p()).sum() / positives.sum().clamp_min(1))

    def marks(self) -> tuple[Mark, ...]:
        """The temperature: the negatives' weight falls by e over that much similarity."""
        return (Mark("temperature", "negative", self.temperature, r"\tau", "temperature"),)
