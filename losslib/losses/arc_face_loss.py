"""ArcFace, the additive angular margin loss."""

from __future__ import annotations

import math
from typing import ClassVar

from torch import Tensor

from losslib.angles import widened
from losslib.params import Interval, Param, positive
from losslib.proxies import CosineProxyLoss
from losslib.types import Paper, PmlSpelling


class ArcFaceLoss(CosineProxyLoss):
    """Classifies by the angle to each class's proxy, after turning the row away from its own by a margin.

    A row always has some gradient, little once its own angle is smaller than every other one by the margin.
    A large margin with a large scale can fail to start: warm it up, or begin with a smaller one. Mislabelled
    rows pull their proxy away from its class.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times cosine, without the margin.

    Numerics: the margin is added by the angle-sum formula, with no gradient of the sine at 0 and 180 degrees;
    beyond 180 degrees it continues downwards in a straight line, as the authors' code does.

    Differs from pytorch-metric-learning: the margin is in radians, and an empty tuple weighs every row 0.

    Example: cosine 1 to its own proxy, 0 to one other, scale 1: log(1 + exp(-cos 0.5)) = 0.3477.
    """

    title = "ArcFace"
    summary = "Classifies by the angle to each class's proxy, its own angle made larger by a margin."
    paper = Paper(
        "Deng, Guo, Xue, Zafeiriou",
        2019,
        "ArcFace: Additive Angular Margin Loss for Deep Face Recognition",
        "https://arxiv.org/abs/1801.07698",
    )
    equation = (
        r"-\log \frac{\exp(s \cos(\theta_y + m))}{\exp(s \cos(\theta_y + m))"
        r" + \sum_{c \ne y} \exp(s \cos \theta_c)}"
    )
    pml: ClassVar[PmlSpelling | None] = PmlSpelling("ArcFaceLoss")

    margin = Param(
        0.5,
        valid=Interval(0.0, math.pi),
        explore=(0.0, 1.0),
        symbol="m",
        meaning="angle added between a row and its own proxy",
        larger="asks for narrower classes",
        unit="radians",
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
        """The cosine after the margin is added to its angle."""
        return widened(cosine, self.margin)

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Scale times cosine."""
        return cosines * self.scale
