"""ArcFace with a margin for each class, by its size."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.angles import widened
from losslib.domains import Domain
from losslib.losses.sub_center_arc_face_loss import SubCenterArcFaceLoss
from losslib.params import Interval, Param, Required, non_negative
from losslib.types import Paper


class Counts(Domain):
    """At least one whole number >= 1: the size of each class."""

    kind = "counts"

    def contains(self, value: Any) -> bool:
        """Whether the value lists whole numbers >= 1."""
        if isinstance(value, Tensor):
            whole = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
            return whole and value.ndim == 1 and value.numel() > 0 and bool((value >= 1).all())
        listed = isinstance(value, (tuple, list)) and len(value) > 0
        return listed and all(type(count) is int and count >= 1 for count in value)

    def convert(self, value: Any) -> tuple[int, ...]:
        """The sizes as a tuple."""
        return tuple(int(count) for count in value)

    def describe(self) -> str:
        """The domain in words."""
        return "the number of samples of each class, whole numbers >= 1"

    def examples_in(self) -> tuple[Any, ...]:
        """Values that belong."""
        return ((1, 1), (100, 3, 7))

    def examples_out(self) -> tuple[Any, ...]:
        """Values that do not belong."""
        return ((), (3, 0), (1.5, 2), 3, "3, 4", None)


class DynamicArcFaceLoss(SubCenterArcFaceLoss):
    """ArcFace whose margin is larger for rare classes, which need more room, than for frequent ones.

    The margin falls with a power of the class's number of samples, down to a floor. It suits long-tailed
    data; with classes of one size it is ArcFace. A class of a handful of noisy samples gets the largest
    margin, and may never fit it.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1, where C = len(class_counts), a sequence or tensor of
    whole numbers; `weight` (C * sub_centers, D). An index tuple weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times cosine, without the margin.

    Numerics: as ArcFaceLoss.

    Differs from the paper, which uses three proxies a class (`sub_centers=3`); one is the default here. The
    paper's margins, and these, are in radians.

    Example: a class of 16 samples has margin 0.5 * 16 ** -0.25 + 0.05 = 0.3.
    """

    title = "Dynamic ArcFace"
    summary = "ArcFace with a margin that is larger for rare classes than for frequent ones."
    paper = Paper(
        "Ha, Liu, Liu, Liu",
        2020,
        "Google Landmark Recognition 2020 Competition Third Place Solution",
        "https://arxiv.org/abs/2010.05350",
    )
    equation = (
        r"-\log \frac{\exp(s \cos(\theta_y + m_y))}{\exp(s \cos(\theta_y + m_y))"
        r" + \sum_{c \ne y} \exp(s \cos \theta_c)}, \quad m_y = a \, n_y^{-\lambda} + b,"
        r" \quad \theta_c = \min_{k \le K} \theta_{c,k}"
    )
    pml = None

    margin = None  # each class has its own
    num_classes = property(lambda self: len(self.class_counts))
    class_counts = Required(Counts(), symbol="n", meaning="number of samples of each class")
    embedding_size = SubCenterArcFaceLoss.embedding_size  # after it
    lambda0 = Param(
        0.25,
        valid=non_negative,
        explore=(0.0, 1.0),
        symbol=r"\lambda",
        meaning="power of the class size by which its margin falls",
        larger="gives rare classes more of a margin than frequent ones",
    )
    a = Param(
        0.5,
        valid=Interval(0.0, 1.5),
        explore=(0.0, 1.0),
        symbol="a",
        meaning="margin of a class of one sample, beyond the floor",
        larger="asks for narrower rare classes",
        unit="radians",
    )
    b = Param(
        0.05,
        valid=Interval(0.0, 1.5),
        explore=(0.0, 0.5),
        symbol="b",
        meaning="margin that even the largest class keeps",
        larger="asks for narrower classes",
        unit="radians",
    )
    sub_centers = Param(
        1,
        valid=SubCenterArcFaceLoss.params["sub_centers"].valid,
        explore=(1, 10),
        symbol="K",
        meaning="number of proxies a class",
        larger="lets a class hold more groups, and noise go elsewhere",
        fixed=True,
    )

    counts: Tensor

    def prepare(self) -> None:
        """Make the weight, and keep the class sizes as a buffer so that they move with the loss."""
        super().prepare()
        self.register_buffer("counts", torch.tensor(self.class_counts), persistent=False)

    def with_margin(self, cosine: Tensor, labels: Tensor) -> Tensor:
        """The cosine after its class's margin is added to its angle."""
        margins = self.a * self.counts.to(cosine.dtype).pow(-self.lambda0) + self.b
        return widened(cosine, margins[labels].unsqueeze(1))
