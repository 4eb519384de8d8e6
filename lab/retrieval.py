"""Retrieval quality of a run's probe: what `losslib.evaluation` defines, quick enough for every frame.

The definitions are those of `losslib.evaluation`, by Euclidean distance, and the tests compare the two.
Partial sorting in numpy takes a third of the time of `torch.topk` on the CPU, and a k-d tree, or groups of
points where there are fewer, find the neighbours in a plane without their distance matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.nearest import nearest_others
from losslib import evaluation

Points: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer[Any]]

TREE_SIZE = 3  # coordinates up to which a k-d tree is the faster way
TREE_POINTS = 2_500  # fewer points are worth no time and memory for loading scipy
TILE_ENTRIES = 50_000  # distances at a time: they stay in the second-level cache
_SIDES: tuple[tuple[int, Literal["left", "right"]], ...] = ((-1, "left"), (1, "right"))


def recall_at_1(embeddings: Tensor, labels: Tensor) -> float:
    """Share of points whose nearest neighbour has their label; see `losslib.evaluation.recall_at_k`.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
    """
    if embeddings.shape[1] > TREE_SIZE:
        return evaluation.recall_at_k(embeddings, labels).item()
    if len(embeddings) <= TREE_POINTS:
        return _recall_in_groups(embeddings.detach(), labels)
    from scipy.spatial import cKDTree

    points, classes = _arrays(embeddings, labels)
    _, found = cKDTree(points).query(points, k=2)
    # a point is its own nearest, but among equal points the tree may name another one first
    own = found[:, 0] == np.arange(len(points))
    nearest = np.where(own, found[:, 1], found[:, 0])
    counted = positives_of(classes) > 0
    return float((classes[nearest] == classes)[counted].mean()) if counted.any() else float("nan")


def _recall_in_groups(embeddings: Tensor, labels: Tensor) -> float:
    """What `losslib.evaluation.recall_at_k` says, ties and last digit included, with few of the distances."""
    found = None
    if embeddings.dtype == torch.float32 and embeddings.device.type == "cpu" and len(embeddings) > 1:
        found = nearest_others((embeddings - embeddings.mean(dim=0)).numpy())
    if found is None:
        return evaluation.recall_at_k(embeddings, labels).item()
    classes = labels.numpy()
    counted = positives_of(classes) > 0
    hits = (classes[found] == classes) & counted
    return float(np.float32(hits.sum()) / np.float32(counted.sum())) if counted.any() else float("nan")


def map_at_r(embeddings: Tensor, labels: Tensor) -> float:
    """Mean average precision at R; see `losslib.evaluation.map_at_r`. Ties go to the point that comes first.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
    """
    points, classes = _arrays(embeddings, labels)
    return _map_at_r(points, positives_of(classes), lambda rows, found: classes[found] == classes[rows])


def recall_at_1_within(embeddings: Tensor, values: Tensor, delta: float) -> float:
    """Share of points whose nearest neighbour has a value at most `delta` away, of those with such a point.

    Args:
        embeddings: (N, D) finite.
        values: continuous labels, (N,).
        delta: >= 0.
    """
    points, numbers = _arrays(embeddings, values)
    positives = positives_within(numbers, delta)
    hits = np.zeros(len(points))
    for rows, found in _neighbours(points, 1):
        hits[rows] = np.abs(numbers[found[:, 0]] - numbers[rows]) <= delta
    return float(hits[positives > 0].mean()) if positives.any() else float("nan")


def map_at_r_within(embeddings: Tensor, values: Tensor, delta: float) -> float:
    """As `map_at_r`, but the positives of a point are those whose value is at most `delta` away."""
    points, numbers = _arrays(embeddings, values)
    return _map_at_r(
        points,
        positives_within(numbers, delta),
        lambda rows, found: np.abs(numbers[found] - numbers[rows]) <= delta,
    )


def positives_within(values: NDArray[Any], delta: float) -> NDArray[np.int64]:
    """Number of other points whose value is at most `delta` away, (N,)."""
    ordered = np.sort(values)
    ends = [np.searchsorted(ordered, values + sign * delta, side) for sign, side in _SIDES]
    counts: NDArray[np.int64] = ends[1] - ends[0] - 1
    return counts


def _map_at_r(
    points: Points,
    positives: NDArray[np.int64],
    is_positive: Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]],
) -> float:
    """The mean over the points with positives; is_positive takes rows (M, 1) and found points (M, K)."""
    most = int(positives.max(initial=0))
    if not most:
        return float("nan")
    ranks = np.arange(1, most + 1)
    average = np.zeros(len(points))
    for rows, found in _neighbours(points, most):
        wanted = positives[rows, None]
        hit = is_positive(rows[:, None], found)
        hit &= ranks <= wanted
        precision = hit.cumsum(axis=1, dtype=np.float64)
        precision *= hit
        precision /= ranks
        average[rows] = precision.sum(axis=1) / np.maximum(wanted[:, 0], 1)
    return float(average[positives > 0].mean())


def _neighbours(points: Points, count: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Tiles of rows (M,) with the nearest other points of each, nearest first, (M, count)."""
    rows = max(16, TILE_ENTRIES // len(points))
    shape = (2, min(rows, len(points)), len(points))
    buffers = np.empty(shape)  # made once: fresh memory costs more than sums
    for start in range(0, len(points), rows):
        stop = min(start + rows, len(points))
        squares = _squared_distances(points, start, stop, *buffers[:, : stop - start])
        yield np.arange(start, stop), _nearest(squares, start, count)


def positives_of(classes: Labels) -> NDArray[np.int64]:
    """Number of other points with the same label, (N,)."""
    if classes.min(initial=0) >= 0 and classes.max(initial=0) <= len(classes):
        group, sizes = classes, np.bincount(classes)
    else:
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
    columns = np.ascontiguousarray(points.T)
    for coordinate, column in enumerate(columns):
        gap = gaps if coordinate else squares
        np.subtract(column[start:stop, None], column, out=gap)
        gap *= gap
        if coordinate:
            squares += gap
    return squares


def _arrays(embeddings: Tensor, labels: Tensor) -> tuple[Points, Labels]:
    points = embeddings.detach().double().cpu().numpy()
    return points - points.mean(axis=0), labels.cpu().numpy()
