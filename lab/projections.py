"""From embeddings of any size to positions on the map."""

from __future__ import annotations

import torch
from torch import Tensor


def project(embeddings: Tensor, previous: Tensor | None = None, size: int = 2) -> Tensor:
    """Positions on the map, (N, size), that do not jump from one frame to the next.

    As many coordinates as the map has are taken as they are. More are projected on their principal
    components, and the plane (or space) is then turned or mirrored to lie as near as it can to the previous
    positions (orthogonal Procrustes), because the sign and, for nearly equal variances, the order of
    components are arbitrary.

    Args:
        embeddings: (N, D) finite, D >= 1; fewer coordinates than the map has are filled up with zeros.
        previous: positions of the previous frame, (N, size), or None.
        size: coordinates of the map, 2 or 3.
    """
    count, width = embeddings.shape
    if width == size:
        return embeddings
    if width < size:
        return torch.cat([embeddings, embeddings.new_zeros(count, size - width)], dim=1)
    wide = embeddings.double()
    centred = wide - wide.mean(dim=0)
    _, directions = torch.linalg.eigh(centred.T @ centred)  # ascending
    axes = directions[:, -size:].flip(1)
    # a first frame of its own has a fixed sign: the largest entry of each axis is positive
    largest = axes.gather(0, axes.abs().argmax(dim=0, keepdim=True))
    scores = centred @ (axes * torch.where(largest < 0, -1.0, 1.0))
    if previous is not None and len(previous) == count:
        target = previous.to(wide)
        left, _, right = torch.linalg.svd(scores.T @ (target - target.mean(dim=0)))
        scores = scores @ (left @ right)
    return scores.to(embeddings.dtype)
