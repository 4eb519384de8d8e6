"""Exact Euclidean distances, differentiable twice.

The usual |a|^2 + |b|^2 - 2ab in the input's own precision loses every digit of a small distance, and the
square root has an infinite slope at 0. Here single precision is widened to double for the matrix product
(about twice its cost, where direct differences cost twenty times as much), and double precision takes
direct differences.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.precision import known_on_cpu, transforming


def widen(x: Tensor) -> tuple[Tensor, bool]:
    """The tensor in double precision where that exists, and whether its values came from a narrower type."""
    if x.dtype == torch.float64 or x.device.type == "mps":
        return x, False
    return x.double(), True


def euclidean(
    x: Tensor, y: Tensor | None, dtype: torch.dtype, by_product: bool, unit: bool = False
) -> Tensor:
    """Matrix (N, M) of Euclidean distances between the rows of x and of y (None: x itself).

    Args:
        x: rows of shape (N, D).
        y: rows of shape (M, D), or None.
        dtype: dtype of the result.
        by_product: whether the rows, now in double precision, came from a narrower type. Then a matrix
            product in double is exact enough, but for near pairs: on the CPU they take direct differences,
            elsewhere and while compiling a distance below its rounding noise (6e-8 of the norms) is 0.
        unit: whether the rows are unit rows, near enough to the origin as they are.
    """
    if transforming():
        return distances_by_difference(x, y).to(dtype)
    result: Tensor = _Euclidean.apply(x, y, dtype, by_product, unit)
    return result


class _Euclidean(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor | None, dtype: torch.dtype, by_product: bool, unit: bool
    ) -> Tensor:
        wide = distances_by_product(x, y, unit) if by_product else distances_by_difference(x, y)
        distance = wide.to(dtype)
        ctx.unit = unit
        ctx.save_for_backward(x, y, distance)
        return distance

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        x, y, distance = ctx.saved_tensors
        # d(distance)/dx = (x - y) / distance, and 0 where the points coincide
        pull = grads[0] / torch.threshold(distance, 0.0, torch.inf)
        # far from the origin, sum(pull) * x - pull @ y would cancel
        a, b = (x, y) if ctx.unit else _centred(x, y)
        if y is None:
            both = (pull + pull.t()).to(x.dtype)
            return both.sum(1, keepdim=True) * a - both @ a, None, None, None, None
        pull = pull.to(x.dtype)
        grad_x = pull.sum(1, keepdim=True) * a - pull @ b
        grad_y = pull.sum(0).unsqueeze(1) * b - pull.t() @ a
        return grad_x, grad_y, None, None, None


def centre(x: Tensor) -> Tensor:
    """Mean of the rows (D,); 0 without any, where a mean is NaN."""
    return x.sum(0) / max(len(x), 1)


def _centred(x: Tensor, y: Tensor | None) -> tuple[Tensor, Tensor]:
    middle = centre(x)
    a = x - middle
    return a, a if y is None else y - middle


def distances_by_difference(x: Tensor, y: Tensor | None) -> Tensor:
    """Matrix (N, M) of distances, each from the difference of its rows: exact, and slow."""
    return torch.cdist(x, x if y is None else y, compute_mode="donot_use_mm_for_euclid_dist")


def distances_by_product(x: Tensor, y: Tensor | None, unit: bool = False) -> Tensor:
    """Matrix (N, M) of distances by a matrix product in the rows' own precision, near pairs apart."""
    a, b = (x, x if y is None else y) if unit else _centred(x, y)
    square_a = (a * a).sum(1)
    square_b = square_a if y is None else (b * b).sum(1)
    squared = torch.mm(a * -2.0, b.t()).add_(square_a.unsqueeze(1)).add_(square_b)
    if known_on_cpu(x):
        return refined(x, y, squared, square_a, square_b)
    # the noise of the product stays below 5 eps of the squares at every width tried (1 to 8192)
    noise = (square_a.unsqueeze(1) + square_b) * (8 * torch.finfo(x.dtype).eps)
    return (squared * (squared > noise)).sqrt()


_NEAR = 1e-6  # share of the largest squared norms above which the product is right to 1e-9


def refined(x: Tensor, y: Tensor | None, squared: Tensor, square_a: Tensor, square_b: Tensor) -> Tensor:
    """Roots of the squared distances, the near pairs taken from direct differences instead."""
    if squared.numel() == 0:
        return squared
    limit = _NEAR * float(square_a.max() + square_b.max())
    own = 0 if y is not None else len(x)  # the diagonal, which needs none
    return roots(squared, limit, x, x if y is None else y, own)


def roots(squared: Tensor, limit: float, x: Tensor, y: Tensor, few: int = 0) -> Tensor:
    """Roots of squared distances (..., N, M), those up to a limit from differences of the rows instead.

    Args:
        squared: by a product of the rows.
        limit: squared distance up to which a product is not enough.
        x: rows (..., N, D).
        y: rows (..., M, D).
        few: number of entries up to the limit that may stay 0, if there are no more.
    """
    distance = torch.threshold(squared, limit, 0.0)
    near = squared.numel() - int(torch.count_nonzero(distance))
    distance.sqrt_()
    if near <= few:
        return distance
    if near * 16 > squared.numel():
        return distances_by_difference(x, y)
    *batch, rows, columns = (squared <= limit).nonzero(as_tuple=True)
    apart = x[(*batch, rows)] - y[(*batch, columns)]
    distance[(*batch, rows, columns)] = torch.linalg.vector_norm(apart, dim=1)
    return distance
