"""What makes a second view of a sample: one augmentation a kind of data, drawn by torch's generator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

TURN = 15.0  # degrees
SHIFT = 0.1  # of width and height
SCALE = 0.15
PIXEL_NOISE = 0.05  # pixels lie between 0 and 1
JITTER = 0.1  # coordinates have standard deviation 1


@dataclass(frozen=True)
class Augmentation:
    """How samples of one kind are augmented: what a person reads, and the function of a batch (B, ...)."""

    summary: str
    augment: Callable[[Tensor], Tensor]


def moved_images(images: Tensor) -> Tensor:
    """Images (B, C, H, W), each turned, scaled and shifted a little by its own random amounts, with noise."""
    amounts = torch.rand(len(images), 4) * 2 - 1  # on the CPU: the same on every device
    noise = torch.randn(images.shape) * PIXEL_NOISE
    angle, scale = amounts[:, 0] * math.radians(TURN), 1 + amounts[:, 1] * SCALE
    cosine, sine = angle.cos() / scale, angle.sin() / scale
    # an output place looks up the input place that came there; a shift of 2 is the whole width
    rows = torch.stack(
        [
            torch.stack([cosine, sine, amounts[:, 2] * 2 * SHIFT], dim=1),
            torch.stack([-sine, cosine, amounts[:, 3] * 2 * SHIFT], dim=1),
        ],
        dim=1,
    )
    grid = affine_grid(rows.to(images), list(images.shape), align_corners=False)
    moved = grid_sample(images, grid, padding_mode="zeros", align_corners=False)
    return (moved + noise.to(images)).clamp(0, 1)


def jittered_points(points: Tensor) -> Tensor:
    """Points (B, F), each moved by normal noise."""
    return points + JITTER * torch.randn(points.shape).to(points)


AUGMENTATIONS = {
    "images": Augmentation(
        f"A view is the image turned by up to {TURN:g} degrees, scaled by up to {100 * SCALE:g} %, shifted "
        f"by up to {100 * SHIFT:g} % of its size, with pixel noise of standard deviation {PIXEL_NOISE:g}.",
        moved_images,
    ),
    "points": Augmentation(
        f"A view is the point moved by noise of standard deviation {JITTER:g}; the coordinates' own is 1.",
        jittered_points,
    ),
}


def two_views(inputs: Tensor, kind: str) -> Tensor:
    """The first views and then the second views of samples (B, ...), (2 B, ...).

    kind: a key of `AUGMENTATIONS`.
    """
    return AUGMENTATIONS[kind].augment(torch.cat([inputs, inputs]))
