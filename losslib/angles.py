"""Angles by way of their cosines, with finite gradients at 0 and 180 degrees."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sine(cosine: Tensor) -> Tensor:
    """Sine of the angle from 0 to 180 degrees; at its ends, where the slope is infinite, no gradient."""
    squared = 1 - cosine * cosine
    inside = (squared > 0).to(cosine.dtype)  # rounding can leave a cosine beyond 1
    return (squared * inside + (1 - inside)).sqrt() * inside


def widened(cosine: Tensor, margin: Tensor | float) -> Tensor:
    """cos(angle + margin), and beyond 180 degrees cos(angle) - margin * sin(margin), which goes on falling.

    margin: radians from 0 to pi, a number or one for each row.
    """
    margin = torch.as_tensor(margin, dtype=cosine.dtype, device=cosine.device)
    within = cosine * margin.cos() - sine(cosine) * margin.sin()
    beyond = cosine - margin * margin.sin()
    return torch.where(cosine >= -margin.cos(), within, beyond)


def multiplied(cosine: Tensor, times: int) -> Tensor:
    """cos(times * angle), reflected and lowered in every further half turn so that it falls all the way."""
    before, current = torch.ones_like(cosine), cosine
    for _ in range(times - 1):  # Chebyshev: a polynomial, whose slope is finite everywhere
        before, current = current, 2 * cosine * current - before
    turns = (cosine.detach().clamp(-1, 1).acos() * (times / math.pi)).floor()
    return (1 - 2 * (turns % 2)) * current - 2 * turns
