"""One autograd node for a whole loss: value and gradient in one pass, nothing of size B x B kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from losslib.precision import stands_for_many


class Found(NamedTuple):
    """A value (0-d, or a number) with its gradients, None for an input that needs none.

    places: of the embeddings' rows in the gradient by them, None where they are in the same order.
    """

    value: Tensor | float
    by_embeddings: Tensor | None = None
    by_references: Tensor | None = None
    by_parameter: Tensor | None = None
    places: Tensor | None = None


class Inputs(NamedTuple):
    """What a fused form is differentiated by."""

    embeddings: Tensor
    references: Tensor | None = None
    parameter: Tensor | None = None


Run = Callable[[Inputs], Found]
Plain = Callable[[Inputs], Tensor]


def apply(inputs: Inputs, run: Run, plain: Plain) -> Tensor:
    """The value, differentiable. A gradient that is to be differentiated again comes from the plain form."""
    value: Tensor = _Fused.apply(*inputs, run, plain)
    return value


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor | None, parameter: Tensor | None, run: Run, plain: Plain
    ) -> Tensor:
        value, *found = run(Inputs(x, y, parameter))
        ctx.plain = plain
        ctx.save_for_backward(x, y, parameter, *found)
        return value if isinstance(value, Tensor) else x.new_full((), value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        x, y, parameter, by_x, by_y, by_parameter, places = ctx.saved_tensors
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            return (*_differentiable(ctx, (x, y, parameter), grad), None, None)
        return (
            None if by_x is None else _times(by_x, grad, places),
            None if by_y is None else by_y * grad,
            None if by_parameter is None else by_parameter * grad,
            None,
            None,
        )


def _times(by_rows: Tensor, grad: Tensor, places: Tensor | None) -> Tensor:
    """A gradient by rows times a number, its rows taken from these places."""
    if places is None:
        return by_rows * grad
    rows = by_rows.index_select(0, places)
    return rows * grad if stands_for_many(grad) else rows.mul_(grad)


def _differentiable(ctx: Any, given: tuple[Any, ...], grad: Tensor) -> list[Tensor | None]:
    """The same gradients with a graph of their own."""
    wanted = [place for place, tensor in enumerate(given) if ctx.needs_input_grad[place]]
    value = ctx.plain(Inputs(*given))
    found: list[Tensor | None] = [None, None, None]
    if wanted and value.requires_grad:
        leaves = [given[place] for place in wanted]
        # the product, not grad_outputs: for those torch imports sympy, 30 MB of the process
        some = torch.autograd.grad(value * grad, leaves, create_graph=True, allow_unused=True)
        for place, gradient in zip(wanted, some, strict=True):
            found[place] = gradient
    return found
