"""How good given embeddings are, each measure with what it is when nothing was learned or all is lost."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lab.embeddings.losses import sample
from lab.metrics import clustering
from lab.percent import percent
from lab.short import short
from losslib import evaluation
from losslib.distances import LpDistance
from losslib.opis import opis

CLUSTERED = 2000  # rows given to k-means
UNIFORM = 4000  # rows whose pairs the uniformity is a mean of


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: the field's name of it.
        value: NaN where it is not defined.
        reference: what it is by chance, at collapse or at best.
        percent: whether it is a share.
    """

    name: str
    value: float
    reference: str
    percent: bool = False

    def text(self) -> str:
        """The value as it is read."""
        if self.value != self.value:
            return "not defined"
        return percent(self.value) if self.percent else short(self.value)


def chance_of(labels: Tensor) -> float:
    """Probability that a random other row has a row's label; NaN for fewer than two rows."""
    sizes = torch.unique(labels, return_counts=True)[1].double()
    total = sizes.sum()
    return float((sizes * (sizes - 1)).sum() / (total * (total - 1)))


def measures(embeddings: Tensor, labels: Tensor | None, normalised: bool = True) -> tuple[Measure, ...]:
    """Retrieval, clustering, threshold consistency and collapse.

    Args:
        embeddings: (N, D) finite.
        labels: (N,); None leaves out what needs them.
        normalised: whether distances are those of embeddings at length 1.
    """
    # of any length: torch's own normalize squares in single precision, and leaves 0 of rows beyond 1e19
    points = LpDistance().normalize(embeddings) if normalised else embeddings
    found: list[Measure] = []
    if labels is not None and len(points) > 1:
        chance = f"chance {percent(chance_of(labels))}"
        for k in (1, 5, 10):
            if k < len(points):
                value = float(evaluation.recall_at_k(points, labels, k))
                found.append(Measure(f"recall@{k}", value, chance if k == 1 else "best 100 %", percent=True))
        found.append(Measure("MAP@R", float(evaluation.map_at_r(points, labels)), "best 100 %", percent=True))
        found.append(
            Measure("R-precision", float(evaluation.r_precision(points, labels)), chance, percent=True)
        )
        rows, classes = sample(points, labels, CLUSTERED)
        # k-means cannot make more clusters than there are different rows
        if 1 < len(classes.unique()) <= len(rows.unique(dim=0)) and len(classes.unique()) < len(rows):
            scores = clustering(rows, classes)
            found.append(Measure("NMI of k-means", scores["nmi"], "best 1"))
            found.append(Measure("AMI of k-means", scores["ami"], "chance 0, best 1"))
        found.append(
            Measure("OPIS", float(opis(points, labels)), "0 where one threshold suits all classes alike")
        )
        found.append(Measure("Alignment", float(evaluation.alignment(points, labels)), "best 0"))
    found.append(
        Measure(
            "Uniformity",
            float(evaluation.uniformity(sample(points, points[:, 0], UNIFORM)[0])),
            "collapsed 0, uniform on a large sphere -4",
        )
    )
    collapse = evaluation.collapse(points)
    size = points.shape[1]
    found.append(Measure("Spread", float(collapse.spread), f"collapsed 0, uniform {size**-0.5:.2g}"))
    found.append(Measure("Effective rank", float(collapse.effective_rank), f"collapsed 1, at most {size}"))
    found.append(Measure("Mean cosine", float(collapse.mean_cosine), "collapsed 1, uniform 0"))
    return tuple(found)
