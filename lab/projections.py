"""From embeddings of any size to positions on the map."""

from __future__ import annotations

import torch
from torch import Tensor


def project(embeddings: Tensor, previous: Tensor | None = None) -> Tensor:
    """Positions on the map, (N, 2), that do not jump from one frame to the next.

    Two coordinates are taken as they are. More are projected on their two principal components, and the
    plane is then turned or mirrored to lie as near as it can to the previous positions (orthogonal
    Procrustes), because the sign and, for nearly equal variances, the order of components are arbitrary.

    Args:
        embeddings: (N, D) finite, D >= 1; one coordinate is drawn on a line.
        previous: positions of the previous frame, (N, 2), or None.
    """
    count, size = embeddings.shape
    if size == 2:
        return embeddings
    if size == 1:
        return torch.cat([embeddings, torch.zeros_like(embeddings)], dim=1)
    wide = embeddings.double()
    centred = wide - wide.mean(dim=0)
    _, directions = torch.linalg.eigh(centred.T @ centred)  # ascending
    axes = directions[:, -2:].flip(1)
    # a first frame of its own has a fixed sign: the largest entry of each axis is positive
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))
    scores = centred @ (axes * torch.where(largest < 0, -1.0, 1.0))
    if previous is not None and len(previous) == count:
        target = previous.to(wide)
        left, _, right = torch.linalg.svd(scores.T @ (target - target.mean(dim=0)))
        scores = scores @ (left @ right)
    return scores.to(embeddings.dtype)
