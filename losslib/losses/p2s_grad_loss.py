"""P2SGrad."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from losslib.losses.threshold_consistent_margin_loss import no_reducer
from losslib.proxies import CosineProxyLoss, ProxyLoss
from losslib.terms import Term, reduced_term
from losslib.types import Paper, PmlSpelling


def on_the_sphere(weight: Tensor) -> Tensor:
    """The default start of the proxies: rows of length 1."""
    return weight.copy_(F.normalize(weight.uniform_(-1, 1), dim=1))


class P2SGradLoss(CosineProxyLoss):
    """Brings the cosine to the own class's proxy to 1 and those to all other proxies to 0.

    It has no scale or margin to choose. The gradient fades in proportion to what is missing, and never
    saturates far from the goal. With many classes the push is spread over all of them and the pull is one
    part in so many, so it learns slowly.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class, normalised in use.

    Returns the mean over all rows and classes (0-d).

    Raises ShapeError and TypeError for inputs, TypeError for a `reducer`, ValueError for a reference set or
    an index tuple, and where `weight` does not match the embeddings' device and dtype outside autocast.

    Terms: `loss`, the value itself, with indices None. `get_logits` gives the cosines.

    Numerics: plain sums; the proxies are not rewritten in place.

    Differs from pytorch-metric-learning in the order of its arguments, and in leaving the weight's length
    alone.

    Example: cosine 0.5 to its own proxy, 0.5 to one other: (0.25 + 0.25) / 2 = 0.25.
    """

    title = "P2SGrad"
    summary = "Brings the cosine to the own class's proxy to 1 and those to all other proxies to 0."
    paper = Paper(
        "Zhang, Zhao, Yan, Gao, Qiao, Wang, Li",
        2019,
        "P2SGrad: Refined Gradients for Optimizing Deep Face Models",
        "https://arxiv.org/abs/1905.02479",
    )
    equation = r"\frac{1}{B C} \sum_i \sum_c \left(\cos \theta_{i,c} - 1_{c = y_i}\right)^2"
    pml = PmlSpelling("P2SGradLoss", {"embedding_size": "descriptors_dim"})
    default_reducer = staticmethod(no_reducer)
    default_init = staticmethod(on_the_sphere)
    parts = tuple(name for name in ProxyLoss.parts if name != "reducer")
    tuples_refused = "it averages over all rows and classes alike"

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """The cosines themselves."""
        return cosines

    def proxy_terms(self, x: Tensor, weight: Tensor, labels: Tensor, times: Tensor) -> dict[str, Term]:
        """`loss`, already reduced."""
        cosines = self.cosines(x, weight)
        target = torch.zeros_like(cosines).scatter(1, labels.unsqueeze(1), 1.0)
        value = F.mse_loss(cosines, target) if cosines.numel() else cosines.sum()
        return {"loss": reduced_term(value)}
