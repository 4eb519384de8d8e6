"""CosFace, the large margin cosine loss."""

from __future__ import annotations

from torch import Tensor

from losslib.params import Param, finite, positive
from losslib.proxies import CosineProxyLoss
from losslib.types import Paper, PmlSpelling


class CosFaceLoss(CosineProxyLoss):
    """Classifies by the cosine to each class's proxy, the row's own cosine lowered by a margin.

    A row always has some gradient, little once its own cosine is larger than every other one by the margin.
    The margin is the same at every angle, so it starts more easily than an angular one. A scale that is too
    small for the number of classes keeps the loss from ever coming near 0.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times cosine, without the margin.

    Numerics: a shifted log-softmax.

    Differs from pytorch-metric-learning only where an index tuple is empty: every row then weighs 0 here.

    Example: cosine 1 to its own proxy, 0 to one other, scale 1: log(1 + exp(-0.65)) = 0.4201.
    """

    title = "CosFace"
    summary = "Classifies by the cosine to each class's proxy, its own cosine lowered by a margin."
    paper = Paper(
        "Wang, Wang, Zhou, Ji, Gong, Zhou, Li, Liu",
        2018,
        "CosFace: Large Margin Cosine Loss for Deep Face Recognition",
        "https://arxiv.org/abs/1801.09414",
    )
    equation = (
        r"-\log \frac{\exp(s (\cos \theta_y - m))}{\exp(s (\cos \theta_y - m))"
        r" + \sum_{c \ne y} \exp(s \cos \theta_c)}"
    )
    pml = PmlSpelling("CosFaceLoss")

    margin = Param(
        0.35,
        valid=finite,
        explore=(0.0, 0.7),
        symbol="m",
        meaning="by how much a row's own cosine is lowered",
        larger="asks for narrower classes",
    )
    scale = Param(
        64.0,
        valid=positive,
        explore=(1.0, 100.0),
        symbol="s",
        meaning="factor of the cosines in the softmax",
        larger="leaves the gradient to the rows nearest to a wrong proxy",
    )

    def with_margin(self, cosine: Tensor, labels: Tensor) -> Tensor:
        """The cosine less the margin."""
        return cosine - self.margin

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Scale times cosine."""
        return cosines * self.scale
