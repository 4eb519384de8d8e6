"""Watches how large tensors become, to see that nothing of size B x R or more is ever held."""

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Largest(TorchDispatchMode):
    """The most entries of any tensor that is made, and the most bytes of memory behind one."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(made, Tensor):
                self.numel = max(self.numel, made.numel())
                self.bytes = max(self.bytes, made.untyped_storage().nbytes())
        return result
