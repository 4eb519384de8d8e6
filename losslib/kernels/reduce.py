"""What a reducer makes of sums and counts, with the derivative by each value."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.precision import values_are_known
from losslib.reducers import AvgNonZeroReducer, MeanReducer, Reducer, SumReducer


def known(reducer: Reducer) -> bool:
    """Whether the reducer is one of those the fused forms can differentiate."""
    return type(reducer) in (MeanReducer, AvgNonZeroReducer, SumReducer)


def share(reducer: Reducer, mask: Tensor, values: Tensor) -> Tensor | float:
    """What the sum of non-negative values is multiplied by: 1 over their number, or that above zero.

    mask: 1 where there is a value, else 0; values: 0 where there is none.
    """
    if type(reducer) is SumReducer:
        return 1.0
    count = torch.count_nonzero(values) if type(reducer) is AvgNonZeroReducer else mask.sum()
    return one_over(count, values.dtype)


def one_over(count: Tensor, dtype: torch.dtype) -> Tensor | float:
    """1 / count, and 1 for a count of 0, where the sum is 0 too; a number where looking costs nothing."""
    if count.device.type == "cpu" and values_are_known(count):
        return 1.0 / max(count.item(), 1)
    return 1.0 / count.clamp_min(1).to(dtype)


def rows(reducer: Reducer, values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """The reduced value of one value a row, where present (B,) says so, and its derivative by each (B,).

    Values that are not present must be finite.
    """
    kept = values * present
    if type(reducer) is AvgNonZeroReducer:
        kept = kept.relu_()
        each = one_over(torch.count_nonzero(kept), kept.dtype)
        return kept.sum() * each, kept.sign_() * each
    each = 1.0 if type(reducer) is SumReducer else one_over(present.sum(), kept.dtype)
    return kept.sum() * each, present * each
