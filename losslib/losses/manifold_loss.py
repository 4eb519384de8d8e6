"""Manifold similarity loss."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from losslib.base import BaseLoss
from losslib.distance_rules import require_cosine
from losslib.distances import CosineSimilarity, Distance
from losslib.errors import ShapeError
from losslib.inputs import Batch
from losslib.learned import weight_at_precision
from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.params import Choice, Either, Integer, Interval, Param, Required, finite, non_negative
from losslib.precision import values_are_known
from losslib.terms import Term, reduced_term
from losslib.types import Paper, PmlSpelling


class ManifoldLoss(BaseLoss):
    """Draws each row to its proxy along the data: by random walks over the batch and all proxies.

    Nearness is the chance that a random walk from a row ends at a proxy, so a row may be near its proxy
    through a chain of others. Two parts compare it: the walks' chances themselves, and the rows' whole
    profiles of chances. A proxy that is less near than the own one by the margin gives no gradient; the
    chances are small, and so must the margin be.

    Shapes: embeddings (B, D), labels (B,): the meta-class of each row, the number of its proxy, from 0 to
    num_proxies - 1.

    Returns the mean over rows of both parts, the second times `lambda_c` (0-d); 0 for an empty batch.

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set or a tuple, and where the proxies do not match the embeddings' device and dtype.
    There is no reducer.

    Terms: `loss`, already reduced. `proxies`, (num_proxies, embedding_size), are parameters. With an infinite
    `lambda_c` the second part stands alone.

    Numerics: one inverse of a well-conditioned matrix of all rows and proxies, (B + num_proxies)^2 values.

    Differs from the paper in taking one ensemble member: the caller groups classes into meta-classes and adds
    the losses. pytorch-metric-learning draws meta-classes at random each call or takes them as
    `indices_tuple`, multiplies by infinity, and inverts in single precision.

    Example: a single proxy leaves nothing to compare: the loss is log(1) = 0.
    """

    title = "Manifold"
    summary = "Draws each row to its proxy along the data, by random walks over the batch and all proxies."
    family = "proxy"
    activity = "softmax"
    paper = Paper(
        "Aziere, Todorovic",
        2019,
        "Ensemble Deep Manifold Similarity Learning Using Hard Proxies",
        "https://openaccess.thecvf.com/content_CVPR_2019/html/"
        "Aziere_Ensemble_Deep_Manifold_Similarity_Learning_Using_Hard_Proxies_CVPR_2019_paper.html",
    )
    equation = (
        r"\mathrm{E}_i \log\left[1 + \sum_{k \ne y_i} e^{[F_{ik} - F_{i y_i} + m]_\ge}\right]"
        r" + \lambda_C \mathrm{E}_i \log\left[1 + \sum_{k \ne y_i}"
        r" e^{[\cos(F_i, F_k) - \cos(F_i, F_{y_i}) + m]_\ge}\right],"
        r" \quad F = (1 - \alpha)(I - \alpha \bar{S})^{-1}, \; k \le K"
    )
    pml = PmlSpelling(
        "ManifoldLoss",
        {"embedding_size": "l", "num_proxies": "K", "lambda_c": "lambdaC"},
        labels="indices_tuple",
    )
    default_distance = CosineSimilarity
    default_reducer = staticmethod(no_reducer)
    parts = ("distance", "embedding_regularizer", "embedding_reg_weight")

    embedding_size = Required(Integer(1), symbol="D", meaning="number of coordinates of an embedding")
    num_proxies = Param(
        50,
        valid=Integer(1),
        explore=(10, 100),
        symbol="K",
        meaning="number of proxies, one a meta-class",
        larger="more meta-classes to tell apart",
        title="Proxies",
        fixed=True,
    )
    lambda_c = Param(
        1.0,
        valid=Either(non_negative, Choice(math.inf)),
        explore=(0.0, 5.0),
        symbol=r"\lambda_C",
        meaning="weight of the part that compares profiles; infinite for that part alone",
        larger="counts the place among all rows more than the walk to the proxy",
        title="Context weight",
    )
    alpha = Param(
        0.8,
        valid=Interval(0.0, 1.0, closed="neither"),
        explore=(0.3, 0.99),
        symbol=r"\alpha",
        meaning="chance that a walk goes on at each step",
        larger="longer walks: nearness through more rows",
    )
    margin = Param(
        5e-4,
        valid=finite,
        explore=(0.0, 0.01),
        symbol="m",
        meaning="by how much the own proxy must be nearer than another",
        larger="more proxies contribute",
    )
    proxies: nn.Parameter

    def prepare(self) -> None:
        """Make the proxies, normally distributed."""
        self.proxies = nn.Parameter(torch.randn(self.num_proxies, self.embedding_size))

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError unless values are cosines."""
        require_cosine(self, distance)

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "its walks lead over all rows of the batch"

    def compute(self, batch: Batch) -> dict[str, Term]:
        """`loss`, already reduced."""
        owner, x = type(self).__name__, batch.embeddings
        if batch.ref_emb is not None:
            raise ValueError(
                f"{owner}: takes no ref_emb, because its walks stay in one batch and its proxies"
            )
        if batch.indices is not None:
            raise ValueError(f"{owner}: takes no indices_tuple, because rows are compared with all proxies")
        if x.shape[1] != self.embedding_size:
            raise ShapeError(
                f"{owner}: embeddings must have {self.embedding_size} columns (embedding_size), "
                f"got {x.shape[1]}"
            )
        own = self._own(batch.labels)
        chance = self._chances(torch.cat([x, weight_at_precision(self, "proxies", batch)]))
        rows = chance.narrow(0, 0, len(x))
        profiles = nn.functional.normalize(chance, dim=1)
        context = profiles.narrow(0, 0, len(x)) @ profiles.narrow(0, len(x), self.num_proxies).t()
        total = self._compared(context, own)
        if math.isfinite(self.lambda_c):
            walk = rows.narrow(1, len(x), self.num_proxies)
            total = self._compared(walk, own) + self.lambda_c * total
        return {"loss": reduced_term(total)}

    def _chances(self, nodes: Tensor) -> Tensor:
        """Chance that a walk from each node ends at each node, (N, N)."""
        similarity = (2 * self.distance(nodes).relu()).exp()
        itself = torch.eye(len(nodes), dtype=nodes.dtype, device=nodes.device)
        similarity = similarity * (1 - itself)
        scale = similarity.sum(1).clamp_min(torch.finfo(nodes.dtype).tiny).rsqrt()
        step = scale.unsqueeze(1) * similarity * scale
        return (1 - self.alpha) * torch.linalg.inv(itself - self.alpha * step)

    def _compared(self, nearness: Tensor, own: Tensor) -> Tensor:
        """Mean over rows of log(1 + sum of exp(excess)) over the proxies nearer than the own by the margin.

        nearness: (B, K). own: (B,), the number of each row's proxy.
        """
        excess = nearness - nearness.gather(1, own.unsqueeze(1)) + self.margin
        other = torch.arange(nearness.shape[1], device=own.device) != own.unsqueeze(1)
        counted = other & (excess >= 0)
        values = (excess.exp() * counted.to(excess.dtype)).sum(1).log1p()
        return values.sum() / max(len(values), 1)

    def _own(self, labels: Any) -> Tensor:
        """The number of each row's proxy, (B,)."""
        owner = type(self).__name__
        if labels is None:
            raise ShapeError(f"{owner}: labels are needed to find each row's proxy, got None")
        if labels.is_floating_point():
            raise TypeError(f"{owner}: labels must be whole numbers, got {labels.dtype}")
        own: Tensor = labels.long()
        if values_are_known(own) and not bool(((own >= 0) & (own < self.num_proxies)).all()):
            raise ShapeError(
                f"{owner}: labels must lie in 0..{self.num_proxies - 1} (num_proxies={self.num_proxies})"
            )
        return own
