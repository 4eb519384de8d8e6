"""How honest a map is: which of the true nearest neighbours are neighbours on the map, too."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from losslib.errors import ParameterError

Points = NDArray[np.floating[Any]]
TILE = 256


class Neighbourhoods:
    """Ranks of every point's neighbours among the embeddings and on the map, by Euclidean distance.

    Equally near neighbours rank in order of their row, in both.

    Args:
        embeddings: (N, D) finite, N >= 3.
        positions: (N, 2) or (N, 3), the map.
    """

    def __init__(self, embeddings: Points, positions: Points) -> None:
        if len(embeddings) != len(positions) or len(embeddings) < 3:
            raise ParameterError(
                "neighbourhoods need the same number of embeddings and positions, at least 3, "
                f"got {len(embeddings)} and {len(positions)}"
            )
        self.count = len(embeddings)
        self._true, self._map = ranks(embeddings), ranks(positions)

    @property
    def most(self) -> int:
        """The largest k for which trustworthiness is defined: below half the points."""
        return (self.count - 1) // 2

    def kept(self) -> NDArray[np.float64]:
        """Mean share of the k true nearest neighbours among the k nearest on the map, k = 1 .. N - 1."""
        later = np.maximum(self._true, self._map)
        counts = np.bincount(later.ravel(), minlength=self.count + 1)[1 : self.count]
        ks = np.arange(1, self.count)
        shares: NDArray[np.float64] = counts.cumsum() / (self.count * ks)
        return shares

    def chance(self) -> NDArray[np.float64]:
        """What a map of points thrown at random keeps on average: k / (N - 1), k = 1 .. N - 1."""
        return np.arange(1, self.count) / (self.count - 1)

    def kept_by_point(self, k: int) -> NDArray[np.float64]:
        """Share of each point's k true nearest neighbours among its k nearest on the map, (N,)."""
        self._check(k, self.count - 1)
        later = np.maximum(self._true, self._map)
        shares: NDArray[np.float64] = ((later >= 1) & (later <= k)).sum(axis=1) / k
        return shares

    def trust_by_point(self, k: int) -> NDArray[np.float64]:
        """Trustworthiness of each point, (N,): 1 unless strangers are among its k nearest on the map.

        A stranger counts by how far its true rank is beyond k; the mean over points is the trustworthiness
        of Venna and Kaski 2001, "Neighborhood Preservation in Nonlinear Projection Methods".
        """
        self._check(k, self.most)
        near = (self._map >= 1) & (self._map <= k)
        beyond = np.where(near, np.maximum(self._true - k, 0), 0).sum(axis=1)
        trust: NDArray[np.float64] = 1 - 2 * beyond / (k * (2 * self.count - 3 * k - 1))
        return trust

    def _check(self, k: int, most: int) -> None:
        if not 1 <= k <= most:
            raise ParameterError(f"k must be a whole number from 1 to {most}, got {k!r}")


def ranks(points: Points) -> NDArray[np.signedinteger[Any]]:
    """Entry (i, j): j is that many-th nearest of i, from 1; the diagonal is 0."""
    wide = points.astype(np.float64) - points.mean(axis=0, dtype=np.float64)
    count = len(wide)
    kind = np.int16 if count < 2**15 else np.int32
    found = np.empty((count, count), dtype=kind)
    for start in range(0, count, TILE):
        rows = wide[start : start + TILE]
        # differences, not norms and products: those cancel where points nearly coincide
        squares = np.zeros((len(rows), count))
        for own, column in zip(rows.T, wide.T, strict=True):
            squares += (own[:, None] - column) ** 2
        squares[np.arange(len(rows)), np.arange(start, start + len(rows))] = -1.0
        order = squares.argsort(axis=1, kind="stable")
        np.put_along_axis(found[start : start + TILE], order, np.arange(count, dtype=kind)[None], axis=1)
    return found
