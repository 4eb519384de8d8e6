"""ProxyNCA, neighbourhood components analysis with proxies."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from losslib.distances import LpDistance
from losslib.params import Param, positive
from losslib.proxies import SoftmaxProxyLoss
from losslib.types import Paper, PmlSpelling


def squared_distance() -> LpDistance:
    """The default distance."""
    return LpDistance(power=2)


class ProxyNCALoss(SoftmaxProxyLoss):
    """Asks each row to be nearer to its own class's proxy than to all the others together.

    Every row always has some gradient. Distances of unit rows end at 2, so with a scale of 1 and many classes
    the loss stays far above 0 and pulls little; raise the scale then.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them as anchors.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives the distances to the proxies, squared by default.

    Numerics: a shifted log-softmax.

    Differs from the paper, whose denominator leaves out the row's own proxy, so that the value may be
    negative; as in pytorch-metric-learning it is a probability here.

    Example: squared distance 0 to its own proxy, 2 to one other: log(1 + exp(-2)) = 0.1269.
    """

    title = "ProxyNCA"
    summary = "Asks each row to be nearer to its own class's proxy than to all the others together."
    paper = Paper(
        "Movshovitz-Attias, Toshev, Leung, Ioffe, Singh",
        2017,
        "No Fuss Distance Metric Learning using Proxies",
        "https://arxiv.org/abs/1703.07464",
    )
    equation = r"-\log \frac{\exp(-\sigma \, d(x, w_y))}{\sum_c \exp(-\sigma \, d(x, w_c))}"
    pml = PmlSpelling("ProxyNCALoss")
    default_distance = staticmethod(squared_distance)
    anchors_weigh = True
    not_claimed: ClassVar[dict[str, str]] = {}

    softmax_scale = Param(
        1.0,
        valid=positive,
        explore=(0.1, 20.0),
        symbol=r"\sigma",
        meaning="factor of the distances in the softmax",
        larger="leaves the gradient to the rows nearest to a wrong proxy",
    )

    def logits(self, x: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        """Scale times similarity, (B, C)."""
        values = self.plain_logits(x, weight)
        return (values if self.distance.is_inverted else -values) * self.softmax_scale
