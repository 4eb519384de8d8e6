"""SoftTriple."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from losslib.params import Integer, Param, finite, positive
from losslib.proxies import SoftmaxProxyLoss
from losslib.types import Paper, PmlSpelling


def kaiming(weight: Tensor) -> Tensor:
    """The default start of the centres."""
    return torch.nn.init.kaiming_uniform_(weight, a=math.sqrt(5))


class SoftTripleLoss(SoftmaxProxyLoss):
    """Classifies by the similarity to several centres a class, the nearest of them counting most.

    Classes with several groups keep them. Every row always has some gradient. Centres of a class that no row
    is near to follow the others slowly; the paper's penalty that merges centres is an option,
    `weight_regularizer`.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C * centers_per_class, D), the centres of
    class 0 first. An index tuple weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, TypeError
    for a distance that is not a similarity, ValueError for a reference set, and where `weight` does not
    match the embeddings' device and dtype outside autocast.

    Terms: `loss`, one value per row. `get_logits` gives the similarity to each class, not multiplied by la.

    Numerics: shifted softmaxes, over the centres and over the classes.

    Differs from pytorch-metric-learning only where an index tuple is empty: every row then weighs 0 here.

    Example: one centre a class, cosines 1 to its own and 0 to one other, la 1, margin 0:
    log(1 + exp(-1)) = 0.3133.
    """

    title = "SoftTriple"
    summary = "Classifies by the similarity to several centres a class, the nearest counting most."
    paper = Paper(
        "Qian, Shang, Sun, Hu, Li, Jin",
        2019,
        "SoftTriple Loss: Deep Metric Learning Without Triplet Sampling",
        "https://arxiv.org/abs/1909.05235",
    )
    equation = (
        r"-\log \frac{\exp(\lambda (S_y - \delta))}{\exp(\lambda (S_y - \delta)) + \sum_{c \ne y}"
        r" \exp(\lambda S_c)}, \quad S_c = \sum_{k \le K} \frac{\exp(s_{c,k} / \gamma)}"
        r"{\sum_{j \le K} \exp(s_{c,j} / \gamma)} s_{c,k}"
    )
    pml = PmlSpelling("SoftTripleLoss")
    default_init = staticmethod(kaiming)
    needs_similarity = True

    centers_per_class = Param(
        10,
        valid=Integer(1),
        explore=(1, 20),
        symbol="K",
        meaning="number of centres a class",
        larger="lets a class hold more groups",
        fixed=True,
    )
    la = Param(
        20.0,
        valid=positive,
        explore=(1.0, 50.0),
        symbol=r"\lambda",
        meaning="factor of the similarities in the softmax over classes",
        larger="leaves the gradient to the rows nearest to a wrong class",
        title="Lambda",
    )
    gamma = Param(
        0.1,
        valid=positive,
        explore=(0.01, 1.0),
        symbol=r"\gamma",
        meaning="what similarities are divided by in the softmax over the centres of a class",
        larger="lets all centres of a class count alike",
    )
    margin = Param(
        0.01,
        valid=finite,
        explore=(0.0, 0.5),
        symbol=r"\delta",
        meaning="by how much the similarity to the own class is lowered",
        larger="asks for narrower classes",
    )

    @property
    def rows_per_class(self) -> int:
        """Number of rows of the weight that stand for one class."""
        centers: int = self.centers_per_class
        return centers

    def plain_logits(self, x: Tensor, weight: Tensor) -> Tensor:
        """Similarity to each class, (B, C)."""
        to_centers = self.distance(x, weight).unflatten(1, (self.num_classes, -1))
        relaxed: Tensor = ((to_centers / self.gamma).softmax(2) * to_centers).sum(2)
        return relaxed

    def logits(self, x: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        """The logits with the margin, (B, C)."""
        similarity, own = self.plain_logits(x, weight), labels.unsqueeze(1)
        lowered = similarity.gather(1, own) - self.margin
        return self.la * similarity.scatter(1, own, lowered)
