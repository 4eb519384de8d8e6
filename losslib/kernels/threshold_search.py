"""How many of its anchor's thresholds each of many distances reaches, by a binary search for all at once.

Numbers that are not negative have the order of the whole numbers that their bits are. They are compared as
these, so that places among the thresholds are whole numbers from the start. Every anchor has a column: what
lies side by side in memory are different anchors' entries, and counting one need not wait for the one before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.kernels.scratch import lease, take

WHOLE = {torch.float32: torch.int32, torch.float64: torch.int64}
_AT_A_TIME = 1 << 16  # entries searched at a time, which stay in the cache
_PARTS = 4  # that a search begins with, by comparing with the thresholds between them


def search(apart: Tensor, thresholds: Tensor, found: Tensor) -> Tensor:
    """Minus the number of thresholds beyond each entry, into `found`; how many are below each threshold.

    apart: (n, b), not negative, a column for each anchor. found: the same; both contiguous.
    thresholds: (m, b), m > 2, ascending, as whole numbers.
    Gives counts (m, b).
    """
    (entries, anchors), (many, _) = apart.shape, thresholds.shape
    width, stride = 1 << many.bit_length(), 1 << (anchors - 1).bit_length()
    before = width - 1 - many  # thresholds of 0, which all reach
    with lease():
        table = take(width, stride, dtype=thresholds.dtype).zero_()
        table[before : width - 1, :anchors] = thresholds
        column = torch.arange(anchors, dtype=table.dtype)
        height = min(max(1, _AT_A_TIME // anchors), entries)
        level = take(height, anchors, dtype=table.dtype)
        keys, places = apart.view(table.dtype), found.view(table.dtype)
        for first in range(0, entries, height):
            here = places[first : first + height]
            _search(keys[first : first + height], table, column, here, level[: len(here)])
        counts = torch.bincount(places.view(-1), minlength=table.numel()).view_as(table)
    least = 1.0 - width
    beyond = torch.arange(least, least - anchors / stride, -1 / stride, dtype=apart.dtype)
    torch.add(beyond, found.copy_(places), alpha=1 / stride, out=found)
    return counts.to(apart.dtype).cumsum_(0)[before : width - 1, :anchors]


def _search(apart: Tensor, table: Tensor, column: Tensor, place: Tensor, level: Tensor) -> None:
    """The place (n, b) of each entry in the flat table (2^k, s): in the row of so many as it reaches.

    column: (b,), that of each anchor. level: room for as many.
    """
    (width, stride), anchors = table.shape, len(column)
    part = width // _PARTS
    for border in range(part - 1, width - 1, part):
        # in whole parts of the thresholds to begin with, whose borders need no looking up
        torch.ge(apart, table[border, :anchors], out=level)
        torch.add(column if border < part else place, level, alpha=part * stride, out=place)
    flat, places, levels, half = table.view(-1), place.view(-1), level.view(-1), part // 2
    while half:
        torch.index_select(flat[(half - 1) * stride :], 0, places, out=levels)
        place.add_(torch.ge(apart, level, out=level), alpha=half * stride)
        half //= 2
