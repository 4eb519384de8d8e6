"""Log-sum-exp over some entries of each row, shifted, for the softmax family."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def logsumexp_over(logits: Tensor, weight: Tensor) -> Tensor:
    """log of the sum of weight * exp(logits) over each row, (B,); -inf for a row without entries.

    logits: (B, R). weight: (B, R), boolean or how often an entry counts.
    """
    return torch.logsumexp(logits + weight.to(logits.dtype).log(), dim=1)


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x)), exact to the last digits of double precision (torch's default switches at 20)."""
    return F.softplus(x, threshold=60.0)
