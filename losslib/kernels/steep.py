"""Slopes of steep softmax losses without subnormal numbers, which processors are very slow to multiply.

A slope is an exponential off the largest of its row times the weight of the row, and both may be next to
nothing. Exponents end at LEAST and weights at what is left by `ordinary`; slopes are multiplied by LIFT, and
what they pull on the embeddings is divided by it. So every product is an ordinary number in single precision.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

LEAST = -45.0  # e^LEAST, times as many entries as a row may have, is nothing next to 1 in double precision
LIFT = 2.0**40
_MARGIN = (
    1e11  # e^LEAST * LIFT times it is 1 / 300: room for a mean over rows and for the embeddings' entries
)


def ordinary(weights: Tensor) -> Tensor:
    """The weights, 0 in place of those that are too small to multiply exponentials by."""
    return F.hardshrink(weights, torch.finfo(weights.dtype).tiny * _MARGIN)
