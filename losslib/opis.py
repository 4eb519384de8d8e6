"""Threshold consistency: whether one distance threshold suits all classes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from losslib.errors import ParameterError
from losslib.params import Integer, Param, positive
from losslib.tiles import Distance, checked, tiles

_BINS = 1 << 16  # of the histogram from which the range of thresholds is read
_THRESHOLDS = Param(100, valid=Integer(2), name="thresholds")
_C = Param(1.0, valid=positive, name="c")


def opis(
    embeddings: Tensor,
    labels: Tensor,
    far: Sequence[float] = (0.01, 0.1),
    thresholds: int = 100,
    c: float = 1.0,
    distance: Distance | None = None,
) -> Tensor:
    """Operating-point inconsistency: how differently the classes fare under one common threshold.

    A pair matches when its distance is at most the threshold d. Of each class, psi(d) is the share of its
    positive pairs that match and phi(d) the share of its negative pairs that do not, and its utility is
    (1 + c^2) phi psi / (c^2 phi + psi). The result is the variance of the utility over classes, averaged
    over the thresholds at which between far[0] and far[1] of all negative pairs match (Zhang, Xu, Zhang,
    Tang, Fang, Wu, Tighe, Xing 2024, "Threshold-Consistent Margin Loss", equations 1 to 3).

    Args:
        embeddings: (N, D) floating.
        labels: (N,).
        far: lowest and highest false accept rate of the thresholds, 0 < far[0] < far[1] <= 1.
        thresholds: number of thresholds, evenly spaced, >= 2.
        c: weight of psi against phi, > 0.
        distance: as in `recall_at_k`; by default the Euclidean distance of the normalised embeddings.

    Returns:
        0-d tensor, 0 when all classes fare alike; NaN when no class has positive and negative pairs.

    Raises:
        ShapeError: embeddings are not (N, D), or labels not (N,).
        ParameterError: far, thresholds or c out of range.
    """
    _THRESHOLDS.check(thresholds, "opis")
    _C.check(c, "opis")
    low, high = _rates(far)
    given = checked(embeddings, labels)
    given = normalize(given, dim=1) if distance is None else given
    _, group = labels.to(given.device).unique(return_inverse=True)
    if len(given) < 2 or not bool(given.isfinite().all()) or not bool((group != group[0]).any()):
        return given.new_full((), torch.nan)
    ends = _ends(given, group, distance, (low, high))
    edges = torch.linspace(
        float(ends[0]), float(ends[1]), thresholds, dtype=torch.float64, device=given.device
    )
    return _inconsistency(*_matches(given, group, distance, edges), c).to(given.dtype)


def _rates(far: Sequence[float]) -> tuple[float, float]:
    if len(far) != 2 or not 0 < far[0] < far[1] <= 1:
        raise ParameterError(f"opis: far must be two rates 0 < low < high <= 1, got {far!r}")
    return float(far[0]), float(far[1])


def _apart(closeness: Tensor, distance: Distance | None) -> Tensor:
    """Distances of a tile; a similarity negated."""
    return -closeness if distance is not None else closeness.clamp(max=0).neg().sqrt()


def _ends(
    given: Tensor, group: Tensor, distance: Distance | None, rates: tuple[float, float]
) -> list[Tensor]:
    """The least distances at which at least such shares of all negative pairs match, to 1 / 65,536."""
    if distance is None:
        least, most = 0.0, 2.0
    else:
        both = [torch.aminmax(-tile) for _, tile in tiles(given, distance, exclude_self=False)]
        least, most = float(min(pair.min for pair in both)), float(max(pair.max for pair in both))
    width = (most - least) / _BINS or 1.0
    counts = torch.zeros(_BINS, dtype=torch.int64, device=given.device)
    for start, tile in tiles(given, distance, exclude_self=False):
        negative = group[start : start + len(tile)].unsqueeze(1) != group
        place = ((_apart(tile, distance)[negative] - least) / width).long().clamp_(0, _BINS - 1)
        counts += torch.bincount(place, minlength=_BINS)
    share = counts.cumsum(0).double() / counts.sum()
    # rounding of a rate such as 0.1 must not ask for one pair more
    places = [torch.searchsorted(share, rate * (1 - 1e-12)) for rate in rates]
    return [least + (place.double() + 1) * width for place in places]


def _matches(
    given: Tensor, group: Tensor, distance: Distance | None, edges: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Matching positive and negative pairs of each class at each threshold (C, K), and all of them (C, 1)."""
    classes, steps = int(group.max()) + 1, len(edges) + 1
    counts = torch.zeros(2, classes * steps, dtype=torch.int64, device=given.device)
    for start, tile in tiles(given, distance):
        rows = torch.arange(start, start + len(tile), device=given.device)
        own = group[rows].unsqueeze(1)
        step = torch.searchsorted(edges, _apart(tile, distance).double().contiguous())
        place = own * steps + step  # the first threshold at which the pair matches
        same = own == group
        counts[1] += torch.bincount(place[same.logical_not()], minlength=classes * steps)
        same[torch.arange(len(rows), device=given.device), rows] = False
        counts[0] += torch.bincount(place[same], minlength=classes * steps)
    near, far = counts.view(2, classes, steps).cumsum(2)
    return near[:, :-1], far[:, :-1], near[:, -1:], far[:, -1:]


def _inconsistency(near: Tensor, far: Tensor, positives: Tensor, negatives: Tensor, c: float) -> Tensor:
    """Variance of the classes' utility, averaged over evenly spaced thresholds."""
    known = ((positives > 0) & (negatives > 0)).squeeze(1)
    psi = near[known].double() / positives[known]
    phi = 1 - far[known].double() / negatives[known]
    below = c**2 * phi + psi
    utility = torch.where(below > 0, (1 + c**2) * phi * psi / below, 0.0)
    variance = (utility - utility.mean(0)).square().mean(0)
    result: Tensor = torch.trapezoid(variance) / (near.shape[1] - 1)
    return result
