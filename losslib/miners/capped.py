"""At most so many tuples of one anchor, each set of them equally likely."""

from __future__ import annotations

import torch
from torch import Tensor


def at_most(anchors: Tensor, limit: int, keys: Tensor | None = None) -> Tensor:
    """Places (K,), ascending, that keep at most `limit` tuples of each anchor, drawn without replacement.

    anchors: (T,) int64, in any order. keys: (T,) random numbers, of which the smallest of each anchor are
    kept; drawn by torch's generator when None. Keeping the smallest keys of two halves and then of both gives
    the same as keeping the smallest of all, so that blocks can be capped one by one.
    """
    keys = random_keys(anchors) if keys is None else keys
    order = keys.argsort()
    order = order[anchors[order].argsort(stable=True)]
    grouped = anchors[order]
    first = torch.searchsorted(grouped, grouped)
    rank = torch.arange(len(grouped), device=grouped.device) - first
    kept, _ = order[rank < limit].sort()
    return kept


def random_keys(like: Tensor) -> Tensor:
    """Random numbers (T,) in double precision, so that ties practically do not occur."""
    return torch.rand(like.shape, dtype=torch.float64, device=like.device)
