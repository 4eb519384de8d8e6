"""Values and gradients of a loss at many positions, in one vectorised pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap

from lab.scenes import OwnDraws

Call = Callable[[Any, Tensor], Tensor]


def values_and_gradients(make: Callable[[], Any], call: Call, at: Tensor) -> tuple[Tensor, Tensor]:
    """The loss at every position of a stack (G, ...), and its gradient there, (G,) and (G, ...).

    One by one where the loss cannot be vectorised: built anew each time, for a loss may remember.

    Raises ValueError or TypeError where the loss refuses what it is called with.
    """
    with OwnDraws():
        try:
            loss = make()
            gradients, values = vmap(
                grad_and_value(lambda x: call(loss, x)), randomness="same", chunk_size=CHUNK
            )(at)
        except RuntimeError:
            rows = [_one(make(), call, x) for x in at]
            values, gradients = (torch.stack(column) for column in zip(*rows, strict=True))
    return values.detach(), gradients.detach()


CHUNK = 128  # positions at a time: a loss over triplets of a batch takes memory


def _one(loss: Any, call: Call, x: Tensor) -> tuple[Tensor, Tensor]:
    x = x.detach().clone().requires_grad_()
    value = call(loss, x)
    (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    return value.detach(), gradient
