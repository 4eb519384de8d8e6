"""SphereFace, the angular softmax loss."""

from __future__ import annotations

from torch import Tensor

from losslib.distances.units import lengths
from losslib.losses.large_margin_softmax_loss import LargeMarginSoftmaxLoss
from losslib.types import Paper, PmlSpelling


class SphereFaceLoss(LargeMarginSoftmaxLoss):
    """Classifies by the angle to each class's proxy, its own angle multiplied by a whole number.

    Large-margin softmax with proxies of length 1, so no class is favoured; the norm of a row still counts,
    and the loss can be lowered by growing it alone. With a margin of 4 it is hard to start from random
    weights.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class, normalised in use.
    An index tuple weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times norm times cosine, without the margin.

    Numerics: the multiplied angle is a polynomial of the cosine, whose slope is finite everywhere.

    Differs from the paper, which anneals the margin in by a weighted mean with the plain logit.

    Example: unit row at 60 degrees from its own proxy, margin 2: its logit is cos 120 = -0.5.
    """

    title = "SphereFace"
    summary = "Classifies by the angle to each class's proxy, its own angle multiplied by a whole number."
    paper = Paper(
        "Liu, Wen, Yu, Li, Raj, Song",
        2017,
        "SphereFace: Deep Hypersphere Embedding for Face Recognition",
        "https://arxiv.org/abs/1704.08063",
    )
    equation = (
        r"-\log \frac{\exp(s \|x\| \psi(\theta_y))}{\exp(s \|x\| \psi(\theta_y))"
        r" + \sum_{c \ne y} \exp(s \|x\| \cos \theta_c)}, \quad"
        r" \psi(\theta) = (-1)^k \cos(m \theta) - 2k, \quad k = \lfloor m \theta / \pi \rfloor"
    )
    pml = PmlSpelling("SphereFaceLoss")

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Scale times cosine times the row's norm."""
        return cosines * (self.scale * lengths(x))
