"""Inputs of data sets as tensors, once a process and device however many runs read them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

KEPT = 8
_LOCK = threading.Lock()
# The array is kept beside its tensor, so that its id cannot be given to another one meanwhile.
_TENSORS: OrderedDict[tuple[int, str], tuple[NDArray[Any], Tensor]] = OrderedDict()


def shared_tensor(array: NDArray[Any], device: torch.device) -> Tensor:
    """A tensor with the array's values; the same one for the same array. Never write to it.

    On the CPU it is the array's own memory: thirty runs on MNIST and the data set share 16 MB.
    """
    key = (id(array), str(device))
    with _LOCK:
        if key not in _TENSORS:
            _TENSORS[key] = (array, torch.from_numpy(np.asarray(_Writable(array))).to(device))
            while len(_TENSORS) > KEPT:
                _TENSORS.popitem(last=False)
        _TENSORS.move_to_end(key)
        return _TENSORS[key][1]


class _Writable:
    """An array that says of itself that it may be written to: torch warns of others, and knows none."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = np.ascontiguousarray(array)
        told = self.array.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}
