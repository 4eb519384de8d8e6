"""Distances of all pairs of a set in tiles of rows, so that the N x N matrix is never held at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from losslib.errors import ShapeError

Distance = Callable[[Tensor, Tensor], Tensor]

# A tile of this many entries stays in the second-level cache; wide sets take at least 64 rows a tile.
_TILE_ENTRIES = 100_000
_MIN_ROWS = 64
# Up to this many coordinates, differences are taken directly: exact, and about as fast as a matrix product.
_DIRECT_SIZE = 3


def checked(embeddings: Tensor, labels: Tensor | None) -> Tensor:
    """The embeddings without their graph, in at least single precision. Raises ShapeError."""
    if embeddings.ndim != 2 or not embeddings.is_floating_point():
        raise ShapeError(
            f"embeddings must be floating, shape (N, D), got {embeddings.dtype} {tuple(embeddings.shape)}"
        )
    if labels is not None and labels.shape != (len(embeddings),):
        raise ShapeError(f"labels must have shape ({len(embeddings)},), got {tuple(labels.shape)}")
    embeddings = embeddings.detach()
    return embeddings.float() if embeddings.dtype in (torch.float16, torch.bfloat16) else embeddings


def tiles(
    embeddings: Tensor, distance: Distance | None, exclude_self: bool = True
) -> Iterator[tuple[int, Tensor]]:
    """First row and closeness (larger is nearer) of a tile of rows to all rows; valid until the next one."""
    count, size = embeddings.shape
    rows = max(_MIN_ROWS, _TILE_ENTRIES // max(count, 1))
    centred = embeddings - embeddings.mean(dim=0)  # fewer digits cancel near the origin
    half_norms = centred.square().sum(dim=1) / 2
    columns = centred.T.contiguous()
    buffer = torch.empty(min(rows, count), count, dtype=embeddings.dtype, device=embeddings.device)
    scratch = torch.empty_like(buffer) if size <= _DIRECT_SIZE else buffer
    for start in range(0, count, rows):
        stop = min(start + rows, count)
        if distance is not None:
            closeness = distance(embeddings[start:stop], embeddings)
            closeness = closeness if getattr(distance, "is_inverted", False) else -closeness
            closeness = closeness.clone()
        elif size <= _DIRECT_SIZE:
            closeness = _direct(columns, start, stop, buffer[: stop - start], scratch[: stop - start])
        else:
            closeness = torch.mm(centred[start:stop], columns, out=buffer[: stop - start])
            closeness.sub_(half_norms).sub_(half_norms[start:stop].unsqueeze(1)).mul_(2)
        if exclude_self:
            closeness.diagonal(start).fill_(-torch.inf)
        yield start, closeness


def _direct(columns: Tensor, start: int, stop: int, out: Tensor, difference: Tensor) -> Tensor:
    """Minus the squared distances of rows start to stop, from differences, coordinate by coordinate."""
    torch.sub(columns[0, start:stop].unsqueeze(1), columns[0], out=out)
    torch.mul(out, out, out=out).neg_()
    for coordinate in columns[1:]:
        torch.sub(coordinate[start:stop].unsqueeze(1), coordinate, out=difference)
        out.addcmul_(difference, difference, value=-1)
    return out
