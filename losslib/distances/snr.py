"""The signal-to-noise-ratio distance."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.distances.base import Distance
from losslib.distances.exact import euclidean, widen


class SNRDistance(Distance):
    """Variance of the difference over the variance of the anchor (Yuan et al., CVPR 2019).

    Not symmetric: rows of x are the anchors. An anchor whose entries are all equal carries no signal; its
    distances are 0 and pass no gradient.
    """

    @property
    def title(self) -> str:
        """The distance in words, for axes."""
        return "Noise-to-signal ratio" + (" of normalised embeddings" if self.normalize_embeddings else "")

    def matrix(self, x: Tensor, y: Tensor | None) -> Tensor:
        """Matrix (N, M) between rows in working precision."""
        wide, by_product = widen(x)
        anchors = self.normalize(wide)
        others = None if y is None else _centred(self.normalize(widen(y)[0]))
        noise = euclidean(_centred(anchors), others, anchors.dtype, by_product).square()
        return (noise / _signal(anchors).unsqueeze(1)).to(x.dtype)

    def rowwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Values (N,) between paired rows."""
        anchors = self.normalize(widen(x)[0])
        noise = (_centred(anchors) - _centred(self.normalize(widen(y)[0]))).square().sum(1)
        return (noise / _signal(anchors)).to(x.dtype)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(1, keepdim=True)


def _signal(x: Tensor) -> Tensor:
    """Sum of squares of each row about its mean, infinite where that is rounding alone. Shape (N,)."""
    square = _centred(x).square().sum(1)
    rounding = 4 * torch.finfo(x.dtype).eps * x.detach().abs().amax(1)
    return torch.where(square > x.shape[1] * rounding.square(), square, torch.inf)
