"""Rows divided by their norm, right at any size of norm and differentiable twice."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.distances.exact import widen
from losslib.precision import transforming


def unit_rows(x: Tensor, p: float = 2.0, dtype: torch.dtype | None = None) -> Tensor:
    """Rows divided by their p-norm, (N, D); a zero row stays zero and passes no gradient.

    dtype: of the result, that of x when None; single precision can be had in double.

    Norms far above 1e19 or below 1e-19 are right in single precision.
    """
    if p != 2 or transforming():
        return _by_largest(x if dtype is None else x.to(dtype), p)
    result: Tensor = _UnitRows.apply(x, x.dtype if dtype is None else dtype)
    return result


def _by_largest(x: Tensor, p: float) -> Tensor:
    """The rows over their p-norm, the largest entry divided out first so that no power overflows.

    That entry may count as a constant: the result does not depend on it.
    """
    scaled = x / _nonzero(x.detach().abs().amax(1, keepdim=True))
    norm = torch.linalg.vector_norm(scaled, p, dim=1, keepdim=True)
    return scaled / norm.clamp_min(1.0)  # at least 1 but for zero rows


def _nonzero(size: Tensor) -> Tensor:
    """Infinity in place of 0: a row divided by it is 0 and passes no gradient."""
    return torch.threshold(size, 0.0, torch.inf)


class _UnitRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        if x.dtype == torch.float64 or x.device.type == "mps":
            ctx.save_for_backward(x, None, None)
            return _unit_and_norm(x)[0].to(dtype)
        norm = norms(x)
        unit = torch.div(x, norm, out=torch.empty_like(x, dtype=dtype))
        ctx.save_for_backward(x, norm, unit)
        return unit

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        x, norm, unit = ctx.saved_tensors
        if norm is not None and not torch.compiler.is_compiling() and not torch.is_grad_enabled():
            grad = grads[0]
            across = torch.addcmul(grad, unit, (grad * unit).sum(1, keepdim=True), value=-1)
            return across.div_(norm.to(across.dtype)).to(x.dtype), None
        return back_through_units(x, grads[0]), None  # from x, so that this can be differentiated again


def back_through_units(x: Tensor, grad: Tensor) -> Tensor:
    """The gradient by the rows x (N, D) from that by their unit rows."""
    unit, norm, scale = _unit_and_norm(x)
    grad = grad.to(unit.dtype)
    across = (grad - unit * (grad * unit).sum(1, keepdim=True)) / norm
    return (across if scale is None else across / scale).to(x.dtype)


def norms(x: Tensor) -> Tensor:
    """Norms (N, 1) of rows in single precision, in double precision: right at any size of the entries.

    Infinity in place of 0: a row divided by it is 0 and passes no gradient.
    """
    return _nonzero(torch.linalg.vector_norm(x, dim=1, keepdim=True, dtype=torch.float64))


def lengths(x: Tensor, p: float = 2.0) -> Tensor:
    """p-norms (N, 1) of rows in their own precision, whose powers may lie beyond it; 0 passes no gradient."""
    return torch.linalg.vector_norm(widen(x)[0], p, dim=1, keepdim=True).to(x.dtype)


def _unit_and_norm(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """Unit rows, their norms with infinity for 0 (N, 1), and what both were divided by first, if anything."""
    wide, widened = widen(x)
    scale = None
    if not widened:
        scale = _nonzero(x.detach().abs().amax(1, keepdim=True))
        wide = x / scale
    norm = _nonzero(torch.linalg.vector_norm(wide, dim=1, keepdim=True))
    return wide / norm, norm, scale
