"""Normalised softmax loss."""

from __future__ import annotations

from torch import Tensor

from losslib.distances import DotProductSimilarity
from losslib.params import Param, positive
from losslib.proxies import SoftmaxProxyLoss
from losslib.types import Paper, PmlSpelling


def normalised_dot_product() -> DotProductSimilarity:
    """The default distance."""
    return DotProductSimilarity(normalize_embeddings=True)


class NormalizedSoftmaxLoss(SoftmaxProxyLoss):
    """Classifies by the similarity to each class's proxy, divided by a temperature.

    Every row always has some gradient; a low temperature leaves most of it to the rows near a wrong proxy. It
    has no margin: once the proxies are far apart, classes stop contracting.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives similarity / temperature. With a distance, the
    similarity is the distance negated.

    Numerics: a shifted log-softmax, so any temperature is safe.

    Differs from pytorch-metric-learning: proxies are normalised where the distance normalises, not always.

    Example: cosine 1 to its own proxy, 0 to one other, temperature 1: log(1 + exp(-1)) = 0.3133.
    """

    title = "Normalised softmax"
    summary = "Classifies by the similarity to each class's proxy, divided by a temperature."
    paper = Paper(
        "Zhai, Wu",
        2019,
        "Classification is a Strong Baseline for Deep Metric Learning",
        "https://arxiv.org/abs/1811.12649",
    )
    equation = r"-\log \frac{\exp(s_y / \tau)}{\sum_c \exp(s_c / \tau)}"
    pml = PmlSpelling("NormalizedSoftmaxLoss")
    default_distance = staticmethod(normalised_dot_product)

    temperature = Param(
        0.05,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\tau",
        meaning="scale that similarities are divided by",
        larger="spreads the gradient over more rows",
    )

    def plain_logits(self, x: Tensor, weight: Tensor) -> Tensor:
        """Similarity over temperature, (B, C)."""
        values: Tensor = self.distance(x, weight)
        return (values if self.distance.is_inverted else -values) / self.temperature
