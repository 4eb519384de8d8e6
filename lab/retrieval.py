"""Retrieval quality of a run's probe: what `losslib.evaluation` defines, quick enough for every frame.

The definitions are those of `losslib.evaluation`, by Euclidean distance, and the tests compare the two.
Partial sorting in numpy takes a third of the time of `torch.topk` on the CPU, and a k-d tree finds the
neighbours of thousands of points in a plane without their distance matrix.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from losslib import evaluation

Points: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer[Any]]

TREE_SIZE = 3  # coordinates up to which a k-d tree is the faster way
TREE_POINTS = 2_500  # fewer points are compared in less time than scipy takes to load
TILE_ENTRIES = 50_000  # distances at a time: they stay in the second-level cache


def recall_at_1(embeddings: Tensor, labels: Tensor) -> float:
    """Share of points whose nearest neighbour has their label; see `losslib.evaluation.recall_at_k`.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
    """
    if embeddings.shape[1] > TREE_SIZE or len(embeddings) <= TREE_POINTS:
        return evaluation.recall_at_k(embeddings, labels).item()
    from scipy.spatial import cKDTree

    points, classes = _arrays(embeddings, labels)
    _, found = cKDTree(points).query(points, k=2)
    # a point is its own nearest, but among equal points the tree may name another one first
    own = found[:, 0] == np.arange(len(points))
    nearest = np.where(own, found[:, 1], found[:, 0])
    counted = positives_of(classes) > 0
    return float((classes[nearest] == classes)[counted].mean()) if counted.any() else float("nan")


def map_at_r(embeddings: Tensor, labels: Tensor) -> float:
    """Mean average precision at R; see `losslib.evaluation.map_at_r`. Ties go to the point that comes first.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
    """
    points, classes = _arrays(embeddings, labels)
    positives = positives_of(classes)
    most = int(positives.max(initial=0))
    if not most:
        return float("nan")
    ranks = np.arange(1, most + 1)
    average = np.zeros(len(points))
    rows = max(16, TILE_ENTRIES // len(points))
    buffers = np.empty(
        (2, min(rows, len(points)), len(points))
    )  # made once: fresh memory costs more than sums
    for start in range(0, len(points), rows):
        stop = min(start + rows, len(points))
        wanted = positives[start:stop, None]
        squares = _squared_distances(points, start, stop, *buffers[:, : stop - start])
        same = classes[_nearest(squares, start, most)] == classes[start:stop, None]
        hit = same & (ranks <= wanted)
        average[start:stop] = (hit * hit.cumsum(axis=1) / ranks).sum(axis=1) / np.maximum(wanted[:, 0], 1)
    return float(average[positives > 0].mean())


def positives_of(classes: Labels) -> NDArray[np.int64]:
    """Number of other points with the same label, (N,)."""
    _, group, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    counts: NDArray[np.int64] = sizes[group] - 1
    return counts


def _nearest(squares: Points, start: int, count: int) -> NDArray[np.int64]:
    """The nearest other points of the rows from start on, nearest first, (rows, count). Spends squares."""
    rows, points = squares.shape
    squares[np.arange(rows), np.arange(start, start + rows)] = np.inf
    # One number holds distance and index: doubles that are not negative are ordered like whole numbers, and
    # the lowest of their 52 digits are not needed. So numbers alone are sorted, which the processor does
    # several times as fast as numbers with their places.
    low = (1 << (points - 1).bit_length()) - 1
    keys = squares.view(np.int64)
    keys &= ~low
    keys |= np.arange(points)
    if count < points:
        keys.partition(count - 1, axis=1)
    nearest = keys[:, :count].copy()
    nearest.sort(axis=1)
    nearest &= low
    return nearest


def _squared_distances(points: Points, start: int, stop: int, squares: Points, gaps: Points) -> Points:
    """Of rows start to stop to all points, written to the two buffers (stop - start, N)."""
    rows = points[start:stop]
    if points.shape[1] > TREE_SIZE:
        norms = (points**2).sum(axis=1)
        np.matmul(-2 * rows, points.T, out=squares)
        squares += norms
        squares += norms[start:stop, None]
        return np.maximum(squares, 0, out=squares)
    squares.fill(0)
    for own, column in zip(rows.T, points.T, strict=True):
        np.subtract(own[:, None], column, out=gaps)
        gaps *= gaps
        squares += gaps
    return squares


def _arrays(embeddings: Tensor, labels: Tensor) -> tuple[Points, Labels]:
    points = embeddings.detach().double().cpu().numpy()
    return points - points.mean(axis=0), labels.cpu().numpy()
