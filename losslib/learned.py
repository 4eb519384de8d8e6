"""Options whose value is a tensor of the loss: a parameter when learned, a buffer when not."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from losslib.inputs import Batch
from losslib.params import Param


class TensorParam(Param):
    """A number option held as a tensor of the module, so that it is saved, moved and may be trained.

    Reading the attribute gives the parameter or buffer itself. Setting a number fills the tensor in place.
    """

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        for store in ("_parameters", "_buffers"):
            held = instance.__dict__.get(store, {}).get(self.name)
            if held is not None:
                return held
        raise AttributeError(self.name)

    def __set__(self, instance: object, value: Any) -> None:
        number = self.check(value, type(instance).__name__)
        held = getattr(instance, self.name, None)
        if held is None:
            instance.__dict__[f"_initial_{self.name}"] = number
        else:
            with torch.no_grad():
                held.fill_(number)


def hold(module: nn.Module, name: str, size: int, learn: bool) -> None:
    """Give the module the tensor of its option `name`: `size` equal values, a parameter or a buffer."""
    values = torch.full((size,), module.__dict__.pop(f"_initial_{name}"))
    if learn:
        module.register_parameter(name, nn.Parameter(values))
    else:
        module.register_buffer(name, values)


def at_precision(owner: str, name: str, held: Tensor, batch: Batch) -> Tensor:
    """A loss's own tensor in the working dtype of a batch.

    Raises ValueError on another device, or for a learned tensor of another dtype outside autocast. A tensor
    that is not learned is a constant: it may be wider or narrower than the embeddings.
    """
    device = batch.embeddings.device
    fits = held.dtype == batch.given_dtype or batch.autocast or not isinstance(held, nn.Parameter)
    if held.device != device or not fits:
        raise ValueError(
            f"{owner}: {name} must match the embeddings ({batch.given_dtype} on {device}), got {held.dtype} "
            f"on {held.device}; call loss.to(device, dtype)"
        )
    return held.to(batch.embeddings.dtype)
