"""How many of its anchor's thresholds each of many distances reaches, by a binary search for all at once."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.kernels.scratch import lease, take

AT_A_TIME = 1 << 16  # entries searched at a time, which stay in the cache
_PARTS = 4  # that a search begins with, by comparing with the thresholds between them


def search(apart: Tensor, table: Tensor, found: Tensor) -> Tensor:
    """Minus the number of thresholds beyond each entry, into `found`; how many entries reach so many.

    apart: (h, w), measured as the thresholds are. found: (h, w), contiguous.
    table: (h, 2^k), k > 1, the ascending thresholds of each row, the last place of a row free.
    Gives counts (h, 2^k) of the entries that reach 0, 1, ... thresholds.
    """
    width = table.shape[1]
    # the first of each row in the flat table
    first = torch.arange(0, table.numel(), width, dtype=apart.dtype).unsqueeze(1)
    with lease():
        place = take(apart.numel(), dtype=torch.int32)  # half the size of int64, and quicker
        level = take(*apart.shape, dtype=apart.dtype)
        part = width // _PARTS
        for border in range(part - 1, width - 1, part):
            # in whole parts of the thresholds to begin with, whose borders need no looking up
            torch.ge(apart, table[:, border : border + 1], out=level)
            torch.add(first if border < part else found, level, alpha=part, out=found)
        flat, places, levels, half = table.view(-1), found.view(-1), level.view(-1), part // 2
        while half:
            torch.index_select(flat[half - 1 :], 0, place.copy_(places), out=levels)
            found.add_(torch.ge(apart, level, out=level), alpha=half)
            half //= 2
        counts = torch.bincount(place.copy_(places), minlength=table.numel())
    found.sub_(first + (width - 1))
    return counts.view_as(table)
