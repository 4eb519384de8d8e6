"""Values and gradients of a loss at many positions, in one vectorised pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from lab.scenes import OwnDraws

Call = Callable[[Any, Tensor], Tensor]


def values_and_gradients(make: Callable[[], Any], call: Call, at: Tensor) -> tuple[Tensor, Tensor]:
    """The loss at every position of a stack (G, ...), and its gradient there, (G,) and (G, ...).

    One by one where the loss cannot be vectorised: built anew each time, for a loss may remember.

    Raises ValueError or TypeError where the loss refuses what it is called with.
    """
    with OwnDraws():
        try:
            loss, stack = make(), at.detach().clone().requires_grad_()
            values = vmap(lambda x: call(loss, x), randomness="same", chunk_size=CHUNK)(stack)
            # of the sum, as no value knows another position; torch.func.grad would import torch's compiler
            gradients = _gradient(values.sum(), stack)
        except RuntimeError:
            rows = [_one(make(), call, x) for x in at]
            values, gradients = (torch.stack(column) for column in zip(*rows, strict=True))
    return values.detach(), gradients.detach()


CHUNK = 128  # positions at a time: a loss over triplets of a batch takes memory


def _one(loss: Any, call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    value = call(loss, x)
    return value.detach(), _gradient(value, x)


def _gradient(value: Tensor, x: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    return gradient
