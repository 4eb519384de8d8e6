"""Working precision: which dtype a computation runs in, and keeping autocast out of it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

_NOTHING = nullcontext()  # which may be entered again and again


def working(x: Tensor) -> Tensor:
    """The tensor in the dtype losses compute in: half and bfloat16 widen to float32, others stay."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def without_autocast(x: Tensor) -> AbstractContextManager[object]:
    """A context in which autocast does not lower the precision of operations on the tensor's device."""
    kind = x.device.type
    if torch.is_autocast_enabled(kind):
        return torch.autocast(kind, enabled=False)
    return _NOTHING


def autocasting(x: Tensor) -> bool:
    """Whether autocast is on for the tensor's device."""
    return torch.is_autocast_enabled(x.device.type)


def transforming() -> bool:
    """Whether a transform of torch.func is at work: it takes no custom gradients of the quick kind."""
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def stands_for_many(x: Tensor) -> bool:
    """Whether the tensor is a batch of such under vmap, which nothing but a new tensor can take in."""
    maps = torch._C._functorch
    return maps.is_batchedtensor(x) or maps.is_legacy_batchedtensor(x)


def values_are_known(x: Tensor) -> bool:
    """Whether the tensor's values may be looked at: not while compiling, nor for fake or meta tensors."""
    return not (torch.compiler.is_compiling() or hasattr(x, "fake_mode") or x.is_meta)


def known_on_cpu(x: Tensor) -> bool:
    """Whether the tensor's values may be looked at without waiting for a device."""
    return x.device.type == "cpu" and values_are_known(x)
