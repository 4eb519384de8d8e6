"""Options whose value is a tensor of the loss: a parameter when learned, a buffer when not."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from losslib.inputs import Batch
from losslib.params import Param
from losslib.precision import values_are_known


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
        instance.__dict__[f"_number_of_{self.name}"] = number
        if held is not None:
            with torch.no_grad():
                held.fill_(number)

    def is_held(self, value: Any) -> bool:
        """Whether the owner is to hold such a value itself: a tensor takes the place of the one it has."""
        return isinstance(value, Tensor)

    def refresh(self, instance: nn.Module, before: torch.dtype) -> None:
        """After a move to another dtype, fill an untouched tensor from its number again: 1.2 stays 1.2."""
        held = getattr(instance, self.name)
        number = instance.__dict__[f"_number_of_{self.name}"]
        if held.dtype == before or held.is_meta:
            return
        with torch.no_grad():
            held.copy_(_refilled(held, before, number))


class HoldsTensors(nn.Module):
    """A module with TensorParam options."""

    params: ClassVar[dict[str, Param]]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        held = {name: p for name, p in self.params.items() if isinstance(p, TensorParam)}
        before = {name: getattr(self, name).dtype for name in held}
        moved = super()._apply(fn, recurse)
        for name, param in held.items():
            param.refresh(self, before[name])
        return moved


def hold(module: nn.Module, name: str, size: int, learn: bool) -> None:
    """Give the module the tensor of its option `name`: `size` equal values, a parameter or a buffer."""
    values = torch.full((size,), module.__dict__[f"_number_of_{name}"])
    if learn:
        module.register_parameter(name, nn.Parameter(values))
    else:
        module.register_buffer(name, values)


def at_precision(module: nn.Module, name: str, batch: Batch) -> Tensor:
    """A loss's own tensor, its TensorParam option `name`, in the working dtype of a batch.

    Raises ValueError on another device, or for a learned tensor of another dtype outside autocast. A tensor
    that is not learned is a constant: it may be wider or narrower than the embeddings.
    """
    owner, held, number = type(module).__name__, getattr(module, name), module.__dict__[f"_number_of_{name}"]
    device = batch.embeddings.device
    fits = held.dtype == batch.given_dtype or batch.autocast or not isinstance(held, nn.Parameter)
    if held.device != device or not fits:
        raise ValueError(
            f"{owner}: {name} must match the embeddings ({batch.given_dtype} on {device}), got {held.dtype} "
            f"on {held.device}; call loss.to(device, dtype)"
        )
    work = batch.embeddings.dtype
    if work != held.dtype and values_are_known(held) and not isinstance(held, nn.Parameter):
        return _refilled(held.to(work), held.dtype, number)
    return held.to(work)


def weight_at_precision(module: nn.Module, name: str, batch: Batch) -> Tensor:
    """A loss's own parameter in the working dtype of a batch.

    Raises ValueError on another device, or for another dtype outside autocast: never recast in silence.
    """
    held, device = getattr(module, name), batch.embeddings.device
    if held.device != device or not (held.dtype == batch.given_dtype or batch.autocast):
        raise ValueError(
            f"{type(module).__name__}: {name} must match the embeddings ({batch.given_dtype} on {device}), "
            f"got {held.dtype} on {held.device}; call loss.to(device, dtype)"
        )
    weight: Tensor = held.to(batch.embeddings.dtype)
    return weight


def _refilled(held: Tensor, before: torch.dtype, number: float) -> Tensor:
    """The tensor with its number at full precision, if it is that number rounded to its dtype before."""
    rounded = torch.tensor(number, dtype=before).to(held)
    return torch.full_like(held, number) if bool((held == rounded).all()) else held
