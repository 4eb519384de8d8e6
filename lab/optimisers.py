"""Optimisers of torch without its compiler.

torch wraps methods of its optimisers so that a compiled program leaves them alone, and for that imports the
compiler at the first step: 0.8 s and 65 MB of every process that trains, for what nobody compiles here. The
methods below are torch's own, without the wrapper; they compute the same.
"""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import torch

WRAPPED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")


@cache
def uncompiled(kind: Any) -> Any:
    """The optimiser class with bare methods; where torch wraps nothing they are what they were."""
    body = {name: inspect.unwrap(getattr(kind, name)) for name in WRAPPED}
    body["step"] = torch.no_grad()(inspect.unwrap(kind.step))  # its wrapper turned the graph off
    return type(kind.__name__, (kind,), body)
