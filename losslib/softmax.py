"""Log-sum-exp over some entries of each row, shifted, for the softmax family."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def logsumexp_over(logits: Tensor, weight: Tensor) -> Tensor:
    """log of the sum of weight * exp(logits) over each row, (B,); -inf for a row without entries.

    logits: (B, R). weight: (B, R), boolean or how often an entry counts.
    """
    weight = weight.to(logits.dtype)
    # a row of -inf alone has no gradient: such rows count every entry and are masked afterwards
    empty = weight.sum(1, keepdim=True) == 0
    total = torch.logsumexp(logits + (weight + empty).log(), dim=1)
    return total.masked_fill(empty.squeeze(1), -torch.inf)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), exact to the last digits of double precision (torch's default switches at 20)."""
    return F.softplus(x, threshold=60.0)
