"""Sub-centre ArcFace."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from losslib.losses.arc_face_loss import ArcFaceLoss
from losslib.params import Integer, Param
from losslib.types import Paper, PmlSpelling


class SubCenterArcFaceLoss(ArcFaceLoss):
    """ArcFace with several proxies a class, of which the nearest to a row stands for the class.

    Each class settles on one dominant proxy, and its mislabelled or odd rows on the others, so noise pulls
    less at the class itself. A proxy that is nearest to no row gets no pull and stays where it is; with too
    many of them a class falls apart into groups.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C * sub_centers, D), the proxies of class 0
    first. An index tuple weighs rows by how often it lists them.

    Returns the mean over the rows (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `loss`, one value per row. `get_logits` gives scale times the largest cosine of each class.

    Numerics: as ArcFaceLoss; the gradient of a maximum goes to one proxy.

    Differs from pytorch-metric-learning: the margin is in radians.

    Example: cosines 1 and 0 to its own two proxies, 0 to another's, scale 1: log(1 + exp(-cos 0.5)) = 0.3477.
    """

    title = "Sub-centre ArcFace"
    summary = "ArcFace with several proxies a class, of which the nearest to a row stands for the class."
    paper = Paper(
        "Deng, Guo, Liu, Gong, Zafeiriou",
        2020,
        "Sub-center ArcFace: Boosting Face Recognition by Large-scale Noisy Web Faces",
        "https://www.ecva.net/papers/eccv_2020/papers_ECCV/papers/123560715.pdf",
    )
    equation = (
        r"-\log \frac{\exp(s \cos(\theta_y + m))}{\exp(s \cos(\theta_y + m))"
        r" + \sum_{c \ne y} \exp(s \cos \theta_c)}, \quad \theta_c = \min_{k \le K} \theta_{c,k}"
    )
    pml: ClassVar[PmlSpelling | None] = PmlSpelling("SubCenterArcFaceLoss")

    sub_centers = Param(
        3,
        valid=Integer(1),
        explore=(1, 10),
        symbol="K",
        meaning="number of proxies a class",
        larger="lets a class hold more groups, and noise go elsewhere",
        fixed=True,
    )

    @property
    def rows_per_class(self) -> int:
        """Number of rows of the weight that stand for one class."""
        sub_centers: int = self.sub_centers
        return sub_centers

    def cosines(self, x: Tensor, weight: Tensor) -> Tensor:
        """The largest cosine of each class, (B, C)."""
        return super().cosines(x, weight).unflatten(1, (self.num_classes, -1)).max(dim=2).values
