"""p-norm distances for p other than 2, differentiable twice."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from losslib.precision import transforming


def minkowski(x: Tensor, y: Tensor | None, p: float) -> Tensor:
    """Matrix (N, M) of p-norms of the differences between rows of x (N, D) and y (M, D; None: x itself)."""
    if transforming():
        return torch.cdist(x, x if y is None else y, p)
    result: Tensor = _Minkowski.apply(x, y, p)
    return result


class _Minkowski(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor | None, p: float) -> Tensor:
        distance = torch.cdist(x, x if y is None else y, p)
        ctx.p = p
        ctx.save_for_backward(x, y, distance)
        return distance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x, y, distance = ctx.saved_tensors
        slope = _slope(x, x if y is None else y, distance, ctx.p, torch.is_grad_enabled())
        weighted = grads[0].unsqueeze(2) * slope
        if y is None:
            return weighted.sum(1) - weighted.sum(0), None, None
        return weighted.sum(1), -weighted.sum(0), None


def _slope(x: Tensor, y: Tensor, distance: Tensor, p: float, twice: bool) -> Tensor:
    """d(distance)/d(x - y), shape (N, M, D); 0 where the points coincide."""
    apart = x.unsqueeze(1) - y.unsqueeze(0)
    if p == 1:
        return apart.sign()
    size = torch.threshold(distance, 0.0, torch.inf).unsqueeze(2)
    if math.isinf(p):
        largest = (apart.abs() == distance.unsqueeze(2)).to(x.dtype) * apart.sign()
        return largest / largest.abs().sum(2, keepdim=True).clamp_min(1.0)  # ties share, as amax does
    ratio = apart / size
    base = ratio.abs()
    if twice and p < 2:  # |r|^(p - 1) has an infinite slope at r = 0
        base = base + (base == 0).to(x.dtype)
    return ratio.sign() * base.pow(p - 1)
