"""Exact row norms and Euclidean distances, differentiable twice.

The usual |a|^2 + |b|^2 - 2ab in the input's own precision loses every digit of a small distance, and the
square root has an infinite slope at 0. Here single precision is widened to double for the matrix product
(about twice its cost, where direct differences cost twenty times as much), and double precision takes
direct differences.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.precision import values_are_known


def unit_rows(x: Tensor, p: float = 2.0) -> Tensor:
    """Rows divided by their p-norm; a zero row stays zero and passes no gradient. Shape (N, D).

    The largest entry of each row is divided out first, so that norms far above 1e19 or below 1e-19 are
    right in single precision. It may count as a constant: the result does not depend on it.
    """
    largest = x.detach().abs().amax(1, keepdim=True)
    scaled = x / largest.masked_fill(largest == 0, torch.inf)
    norm = torch.linalg.vector_norm(scaled, p, dim=1, keepdim=True)
    return scaled / norm.clamp_min(1.0)  # at least 1 but for zero rows


def widen(x: Tensor) -> tuple[Tensor, bool]:
    """The tensor in double precision where that exists, and whether its values came from a narrower type."""
    if x.dtype == torch.float64 or x.device.type == "mps":
        return x, False
    return x.double(), True


def euclidean(x: Tensor, y: Tensor | None, dtype: torch.dtype, by_product: bool) -> Tensor:
    """Matrix (N, M) of Euclidean distances between the rows of x and of y (None: x itself).

    Args:
        x: rows of shape (N, D).
        y: rows of shape (M, D), or None.
        dtype: dtype of the result.
        by_product: whether the rows, now in double precision, came from a narrower type. Then a matrix
            product in double is exact enough, but for near pairs: on the CPU they take direct differences,
            elsewhere and while compiling a distance below its rounding noise (6e-8 of the norms) is 0.
    """
    result: Tensor = _Euclidean.apply(x, y, dtype, by_product)
    return result


class _Euclidean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor | None, dtype: torch.dtype, by_product: bool) -> Tensor:
        other = x if y is None else y
        if by_product:
            distance = _by_product(x, y).to(dtype)
        else:
            distance = torch.cdist(x, other, compute_mode="donot_use_mm_for_euclid_dist").to(dtype)
        ctx.save_for_backward(x, y, distance)
        return distance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, y, distance = ctx.saved_tensors
        # d(distance)/dx = (x - y) / distance, and 0 where the points coincide
        pull = grads[0].to(x.dtype) / torch.threshold(distance.to(x.dtype), 0.0, torch.inf)
        centre = x.mean(0)  # far from the origin, sum(pull) * x - pull @ y would cancel
        a = x - centre
        if y is None:
            both = pull + pull.t()
            return both.sum(1, keepdim=True) * a - both @ a, None, None, None
        b = y - centre
        grad_x = pull.sum(1, keepdim=True) * a - pull @ b
        grad_y = pull.sum(0).unsqueeze(1) * b - pull.t() @ a
        return grad_x, grad_y, None, None


def _by_product(x: Tensor, y: Tensor | None) -> Tensor:
    centre = x.mean(0)
    a = x - centre
    b = a if y is None else y - centre
    square_a = (a * a).sum(1)
    square_b = square_a if y is None else (b * b).sum(1)
    squares = square_a.unsqueeze(1) + square_b.unsqueeze(0)
    squared = torch.addmm(squares, a, b.t(), alpha=-2.0)
    if x.device.type == "cpu" and values_are_known(x):
        return _refined(x, y, squared, squared > squares * _NEAR)
    # the noise of the product stays below 5 eps of the squares at every width tried (1 to 8192)
    return (squared * (squared > squares * (8 * torch.finfo(x.dtype).eps))).sqrt()


_NEAR = 1e-6  # share of the squared norms above which the product is right to 1e-9


def _refined(x: Tensor, y: Tensor | None, squared: Tensor, far: Tensor) -> Tensor:
    """Roots of the squared distances, the near pairs taken from direct differences instead."""
    distance = (squared * far).sqrt()
    near_count = squared.numel() - int(torch.count_nonzero(far))
    if near_count <= (0 if y is not None else len(x)):
        return distance  # none, or the diagonal alone
    other = x if y is None else y
    if near_count * 16 > squared.numel():
        return torch.cdist(x, other, compute_mode="donot_use_mm_for_euclid_dist")
    rows, columns = far.logical_not().nonzero(as_tuple=True)
    distance[rows, columns] = torch.linalg.vector_norm(x[rows] - other[columns], dim=1)
    return distance
