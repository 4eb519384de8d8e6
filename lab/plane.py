"""The plane of the map: where embeddings lie on it, told in few digits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lab.projections import project

if TYPE_CHECKING:
    from lab.run import Run

SHOWN_NUMBERS = 3  # coordinates of a vector that are told


class Plane:
    """The map's plane: where embeddings lie on it, and arrows between them.

    Embeddings of more than two numbers lie where the map's own projection, refitted to its points, puts them.
    """

    def __init__(self, run: Run) -> None:
        self.size = run.config.dim
        if self.size == 2:
            return
        points = run.trainer.embed(torch.from_numpy(run.probe.index.copy()))
        positions = project(points.float().cpu(), run.probe.previous).double()
        points = points.double().cpu()
        self.middle, self.offset = points.mean(0), positions.mean(0)
        self.axes = torch.linalg.lstsq(points - self.middle, positions - self.offset, driver="gelsd").solution

    def points(self, embeddings: Tensor) -> Tensor:
        """Positions (N, 2) of embeddings (N, D)."""
        if self.size == 2:
            return self.arrows(embeddings)
        return (embeddings.double().cpu() - self.middle) @ self.axes + self.offset

    def arrows(self, vectors: Tensor) -> Tensor:
        """Vectors (N, D) seen in the plane, (N, 2)."""
        wide = vectors.double().cpu()
        return wide if self.size == 2 else wide @ self.axes


def number(value: Any) -> float:
    """A number in six digits."""
    return float(f"{float(value):.6g}")


def vector(values: Tensor) -> list[float]:
    """The first numbers of a vector (D,)."""
    return [number(v) for v in values[:SHOWN_NUMBERS].tolist()]


def rounded(values: Tensor) -> list[list[float]]:
    """A matrix (N, M) as lists."""
    return [[number(v) for v in row] for row in values.tolist()]
