"""Proxy Anchor."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from losslib.params import Param, finite, positive
from losslib.proxies import ProxyLoss
from losslib.reducers import DivisorReducer
from losslib.softmax import logsumexp_over, softplus
from losslib.terms import DenseTerm, Term
from losslib.types import Paper, PmlSpelling


def kaiming(weight: Tensor) -> Tensor:
    """The default start of the proxies."""
    return torch.nn.init.kaiming_normal_(weight, mode="fan_out")


class ProxyAnchorLoss(ProxyLoss):
    """Takes each proxy as an anchor: pulls the rows of its class near and pushes all others away.

    Rows are weighed by how hard they are, the hardest most. A row beyond both margins still has a little
    gradient, less the larger alpha. Classes absent from the batch push only; with many classes that is most
    of them.

    Shapes: embeddings (B, D), labels (B,) in 0..C-1; `weight` (C, D), one proxy a class. An index tuple
    weighs rows by how often it lists them: the weight multiplies a row's exponential.

    Returns the pull averaged over the batch's classes plus the push averaged over all classes (0-d).

    Raises ParameterError for options outside their domain, ShapeError and TypeError for inputs, ValueError
    for a reference set, and where `weight` does not match the embeddings' device and dtype outside
    autocast.

    Terms: `pos_loss` and `neg_loss`, one value per class, with divisors: the number of classes in the batch
    and of all. They need DivisorReducer. `get_logits` gives the cosines.

    Numerics: one shifted log-sum-exp a class, then a softplus.

    Differs from pytorch-metric-learning where an index tuple is given: there the weight less 1 is added to
    the exponent.

    Example: one class, one row at cosine 0.1: log(1 + exp(32 * 0)) = 0.6931.
    """

    title = "Proxy Anchor"
    summary = "Takes each proxy as an anchor that pulls the rows of its class and pushes all others."
    paper = Paper(
        "Kim, Kim, Cho, Kwak",
        2020,
        "Proxy Anchor Loss for Deep Metric Learning",
        "https://arxiv.org/abs/2003.13911",
    )
    equation = (
        r"\frac{1}{|P^+|} \sum_{p \in P^+} \log\left(1 + \sum_{x \in X_p^+}"
        r" e^{-\alpha (s(x, p) - \delta)}\right)"
        r" + \frac{1}{|P|} \sum_{p \in P} \log\left(1 + \sum_{x \in X_p^-}"
        r" e^{\alpha (s(x, p) + \delta)}\right)"
    )
    pml = PmlSpelling("ProxyAnchorLoss")
    default_reducer = DivisorReducer
    default_init = staticmethod(kaiming)

    margin = Param(
        0.1,
        valid=finite,
        explore=(0.0, 0.5),
        symbol=r"\delta",
        meaning="similarity that positives must exceed, and negatives fall short of negated",
        larger="asks for narrower classes, farther apart",
    )
    alpha = Param(
        32.0,
        valid=positive,
        explore=(1.0, 64.0),
        symbol=r"\alpha",
        meaning="factor of the similarities in the exponentials",
        larger="leaves the gradient to the hardest rows",
    )

    def not_by_anchor(self, has_reference: bool) -> str:
        """Why it does not split by anchor."""
        return "its terms belong to proxies, each over all rows of the batch"

    def proxy_terms(self, x: Tensor, weight: Tensor, labels: Tensor, times: Tensor) -> dict[str, Term]:
        """`pos_loss` and `neg_loss` per class."""
        values = self.plain_logits(x, weight).t()  # (C, B)
        own = F.one_hot(labels, self.num_classes).t().to(values.dtype)
        pull = self.alpha * self.distance.margin(values, self.margin)
        push = self.alpha * self.distance.margin(-self.margin, values)
        near = softplus(logsumexp_over(pull, own * times))
        far = softplus(logsumexp_over(push, (1 - own) * times))
        every = torch.ones_like(near, dtype=torch.bool)
        present = own.amax(1).sum() if len(x) else own.sum()
        return {
            "pos_loss": DenseTerm(near, every, present),
            "neg_loss": DenseTerm(far, every, every.sum()),
        }
