"""Points on the unit circle, for values worked out by hand."""

import math

import torch
from torch import Tensor


def on_circle(*degrees: float) -> Tensor:
    """Unit rows of the plane at these angles."""
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1)


def cosine(degrees: float) -> float:
    return math.cos(math.radians(degrees))
