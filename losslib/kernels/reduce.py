"""What a reducer makes of sums and counts, with the derivative by each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

from losslib.kernels.scratch import leased, room
from losslib.reducers import AvgNonZeroReducer, MeanReducer, Reducer, SumReducer

Number: TypeAlias = Tensor | float  # 0-d where looking at its value would cost something


def known(reducer: Reducer) -> bool:
    """Whether the reducer is one of those the fused forms can differentiate."""
    return type(reducer) in (MeanReducer, AvgNonZeroReducer, SumReducer)


def number(value: Tensor) -> Number:
    """The number of a 0-d tensor where looking costs nothing, else the tensor."""
    return value.item() if leased() else value


def total(values: Tensor) -> Number:
    """The sum of all values."""
    return number(values.sum())


def one_over(count: Number, dtype: torch.dtype) -> Number:
    """1 / count, and 1 for a count of 0, where the sum is 0 too."""
    count = number(count) if isinstance(count, Tensor) else count
    return 1.0 / (count.clamp_min(1).to(dtype) if isinstance(count, Tensor) else max(count, 1))


def share(
    reducer: Reducer, mask: Tensor | Callable[[], Tensor], values: Tensor, signs: bool = False
) -> Number:
    """What the sum of non-negative values is multiplied by: 1 over their number, or that above zero.

    mask: 1 where there is a value, else 0, or what makes it. values: 0 where there is none; their signs do as
    well (`signs`).
    """
    if type(reducer) is SumReducer:
        return 1.0
    if type(reducer) is AvgNonZeroReducer:
        mask = values if signs else torch.sign(values, out=room(values))
    return one_over(total(mask if isinstance(mask, Tensor) else mask()), values.dtype)


def each(reducer: Reducer, number: float, above: float) -> float:
    """What a sum of values is multiplied by, of their number and that of those above 0."""
    if type(reducer) is SumReducer:
        return 1.0
    return 1 / max(above if type(reducer) is AvgNonZeroReducer else number, 1.0)


def rows(reducer: Reducer, values: Tensor, present: Tensor | None) -> tuple[Number, Number]:
    """The reduced value of one value a row, and its derivative by each, (B,) or one number for all.

    present (B,): 1 where a row has a value, None where all have. Others must be finite.
    """
    kept = values if present is None else values * present
    kind = type(reducer)
    if kind is AvgNonZeroReducer and leased() and kept.numel() and kept.amin().item() > 0:
        kind = MeanReducer  # of all rows
    if kind is AvgNonZeroReducer:
        kept = kept.relu()
        above = kept.sign()
        count = total(above)
        each = one_over(count, kept.dtype)
        every = not isinstance(count, Tensor) and count == kept.numel()
        return total(kept) * each, each if every else above * each
    if kind is SumReducer:
        each = 1.0
    else:
        each = one_over(kept.shape[0] if present is None else total(present), kept.dtype)
    return total(kept) * each, each if present is None else present * each


def difference_(a: Tensor, by_a: Number, b: Tensor, by_b: Number) -> tuple[Tensor, float]:
    """(by_a * a - by_b * b) times a number, in the place of a or b, and that number."""
    if isinstance(by_a, Tensor) or isinstance(by_b, Tensor):
        return a.mul_(by_a).sub_(b.mul_(by_b)), 1.0
    if by_a == 0:
        return (b, -1 / by_b) if by_b else (b.zero_(), 1.0)
    if by_b == 0:
        return a, 1 / by_a
    return a.sub_(b, alpha=by_b / by_a), 1 / by_a


def times_(slope: Tensor, factor: Number) -> tuple[Tensor, float]:
    """factor * slope times a number, in its place, and that number: a factor known is left to the rows."""
    if isinstance(factor, Tensor) or factor == 0:
        return slope.mul_(factor), 1.0
    return slope, 1 / factor
