"""Large-margin softmax loss."""

from __future__ import annotations

from torch import Tensor

from losslib.angles import multiplied
from losslib.distances.units import lengths
from losslib.params import Integer, Param, positive
from losslib.proxies import CosineProxyLoss
from losslib.types import Paper, PmlSpelling


class LargeMarginSoftmaxLoss(CosineProxyLoss):
    """Classifies by the dot product with each class's proxy, its own angle multiplied by a whole number.

    Norms count: longer rows are surer of their class, and the loss can be lowered by growing them alone. With
    a margin of 4 the loss is hard to start from random weights, where most angles are near 90 degrees; begin
    with a smaller one. With a margin of 1 it is a softmax without a bias.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times dot product, without the margin.

    Numerics: the multiplied angle is a polynomial of the cosine, whose slope is finite everywhere.

    Differs from pytorch-metric-learning only where an index tuple is empty: every row then weighs 0 here.

    Example: unit row at 60 degrees from its own unit proxy, margin 2: its logit is cos 120 = -0.5.
    """

    title = "Large-margin softmax"
    summary = "Classifies by the dot product with each class's proxy, its own angle multiplied."
    paper = Paper(
        "Liu, Wen, Yu, Yang",
        2016,
        "Large-Margin Softmax Loss for Convolutional Neural Networks",
        "https://arxiv.org/abs/1612.02295",
    )
    equation = (
        r"-\log \frac{\exp(s \|x\| \|w_y\| \psi(\theta_y))}{\exp(s \|x\| \|w_y\| \psi(\theta_y))"
        r" + \sum_{c \ne y} \exp(s \|x\| \|w_c\| \cos \theta_c)}, \quad"
        r" \psi(\theta) = (-1)^k \cos(m \theta) - 2k, \quad k = \lfloor m \theta / \pi \rfloor"
    )
    pml = PmlSpelling("LargeMarginSoftmaxLoss")

    margin = Param(
        4,
        valid=Integer(1),
        explore=(1, 6),
        symbol="m",
        meaning="whole number that a row's own angle is multiplied by",
        larger="asks for narrower classes",
    )
    scale = Param(
        1.0,
        valid=positive,
        explore=(0.1, 10.0),
        symbol="s",
        meaning="factor of the logits",
        larger="leaves the gradient to the rows nearest to a wrong proxy",
    )

    def with_margin(self, cosine: Tensor, labels: Tensor) -> Tensor:
        """The cosine of the multiplied angle, made to fall all the way."""
        return multiplied(cosine, self.margin)

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Scale times cosine times both norms."""
        return cosines * (self.scale * lengths(x) * lengths(weight).t())
