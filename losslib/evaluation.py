"""Quality of embeddings that does not depend on any loss: retrieval, alignment, uniformity, collapse.

Every function works in tiles of rows, so that the N x N matrix is never held at once, runs where the
embeddings are and returns 0-d tensors of their dtype. Embeddings that are not finite give NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from losslib.errors import ParameterError
from losslib.opis import opis
from losslib.tiles import Distance, checked, tiles

__all__ = [
    "Collapse",
    "alignment",
    "collapse",
    "map_at_r",
    "opis",
    "precision_at_1",
    "r_precision",
    "recall_at_k",
    "uniformity",
]


class Collapse(NamedTuple):
    """How much of the space the embeddings use.

    Attributes:
        spread: standard deviation per dimension (root mean square over dimensions), in embedding units;
            0 when all embeddings are equal, 1 / sqrt(D) when unit vectors are spread evenly.
        effective_rank: exp of the entropy of the singular values of the centred embeddings, from 1
            (a line or a point) to D (Roy and Vetterli 2007, "The effective rank").
        mean_cosine: mean cosine similarity of two different embeddings; 1 when all point the same way. Zero
            vectors have no direction and are left out; NaN when fewer than two are not zero.
    """

    spread: Tensor
    effective_rank: Tensor
    mean_cosine: Tensor


def recall_at_k(embeddings: Tensor, labels: Tensor, k: int = 1, distance: Distance | None = None) -> Tensor:
    """Share of rows with at least one row of the same label among their k nearest neighbours.

    Each row is searched against all others; rows whose label occurs once are left out.

    Args:
        embeddings: (N, D) floating.
        labels: (N,).
        k: number of neighbours, from 1 to N - 1.
        distance: a losslib distance, or any function of two sets that returns their matrix (an attribute
            `is_inverted` that is True marks a similarity); by default the Euclidean distance of the
            embeddings as they are, not normalised.

    Returns:
        0-d tensor from 0 to 1; NaN when no label occurs twice.

    Raises:
        ShapeError: embeddings are not (N, D), or labels not (N,).
        ParameterError: k is out of range.
    """
    embeddings = checked(embeddings, labels)
    labels, count = labels.to(embeddings.device), len(labels)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < max(count, 2):
        raise ParameterError(f"recall_at_k: k must be a whole number from 1 to {count - 1}, got {k!r}")
    found = torch.zeros(count, dtype=torch.bool, device=embeddings.device)
    for start, closeness in tiles(embeddings, distance):
        # max is several times as fast as topk
        nearest = closeness.max(dim=1, keepdim=True).indices if k == 1 else closeness.topk(k, dim=1).indices
        stop = start + len(nearest)
        found[start:stop] = (labels[nearest] == labels[start:stop].unsqueeze(1)).any(dim=1)
    return _mean_over(found.to(embeddings.dtype), _positives(labels) > 0, embeddings)


def precision_at_1(embeddings: Tensor, labels: Tensor, distance: Distance | None = None) -> Tensor:
    """Share of rows whose nearest neighbour has the same label; the same as `recall_at_k` with k = 1."""
    return recall_at_k(embeddings, labels, 1, distance)


def r_precision(embeddings: Tensor, labels: Tensor, distance: Distance | None = None) -> Tensor:
    """Mean share of positives among a row's R nearest neighbours, where R is its number of positives.

    Arguments, errors and NaN as in `recall_at_k` (Musgrave, Belongie, Lim 2020, "A Metric Learning Reality
    Check", section 3.2).
    """
    precision, _ = _at_r(embeddings, labels, distance)
    return precision


def map_at_r(embeddings: Tensor, labels: Tensor, distance: Distance | None = None) -> Tensor:
    """Mean average precision at R: like `r_precision`, but positives count more the nearer they rank.

    For a row with R positives, (1 / R) * sum over ranks i = 1..R of precision(i) where rank i is a
    positive, else 0; then the mean over rows. Arguments, errors and NaN as in `recall_at_k` (Musgrave,
    Belongie, Lim 2020, section 3.2).
    """
    _, average = _at_r(embeddings, labels, distance)
    return average


def alignment(embeddings: Tensor, labels: Tensor) -> Tensor:
    """Mean squared Euclidean distance of positive pairs of normalised embeddings.

    Args:
        embeddings: (N, D) floating; normalised here.
        labels: (N,).

    Returns:
        0-d tensor from 0 (each class is one point) to 4; NaN when there is no positive pair.
        Wang and Isola 2020, "Understanding Contrastive Representation Learning", equation 1 with alpha = 2.
    """
    unit = normalize(checked(embeddings, labels), dim=1)
    _, group, sizes = labels.to(unit.device).unique(return_inverse=True, return_counts=True)
    sizes = sizes.to(unit.dtype)
    sums = torch.zeros(len(sizes), unit.shape[1], dtype=unit.dtype, device=unit.device)
    means = sums.index_add_(0, group, unit) / sizes.unsqueeze(1)
    # sum over i, j of |x_i - x_j|^2 is 2 n times the squared deviations from the mean: nothing cancels
    deviations = (unit - means[group]).square().sum(dim=1)
    total = (2 * sizes[group] * deviations).sum()
    return total / (sizes * (sizes - 1)).sum()


def uniformity(embeddings: Tensor, t: float = 2.0) -> Tensor:
    """Log of the mean Gaussian potential exp(-t d^2) over pairs of different normalised embeddings.

    Args:
        embeddings: (N, D) floating; normalised here.
        t: sharpness of the potential, > 0.

    Returns:
        0-d tensor, 0 when all embeddings coincide and smaller the more evenly they cover the sphere, never
        below -4 t; NaN for fewer than two rows. Wang and Isola 2020, equation 2.
    """
    unit = normalize(checked(embeddings, None), dim=1)
    count = len(unit)
    total = torch.zeros((), dtype=unit.dtype, device=unit.device)
    for start, closeness in tiles(unit, None, exclude_self=False):
        potential = closeness.clamp_(max=0).mul_(t).exp_()
        potential.diagonal(start).fill_(0)
        total = total + potential.sum()
    return (total / (count * (count - 1)) if count > 1 else total / 0).log()


def collapse(embeddings: Tensor) -> Collapse:
    """Spread per dimension, effective rank and mean cosine of (N, D) embeddings; see `Collapse`."""
    embeddings = checked(embeddings, None)
    # the D x D product is small, so double precision costs nothing and keeps small singular values
    wide = embeddings.double()
    centred = wide - wide.mean(dim=0)
    scatter = centred.T @ centred
    finite = scatter.isfinite().all()
    eigenvalues = torch.linalg.eigvalsh(torch.where(finite, scatter, 0.0)).clamp(min=0)
    # rounding leaves eigenvalues of 1e-16 of the largest, which would count as directions
    eigenvalues = torch.where(eigenvalues < 1e-14 * eigenvalues.max(), 0.0, eigenvalues)
    singular = eigenvalues.sqrt()
    total = singular.sum()
    share = singular / torch.where(total > 0, total, 1.0)
    rank = torch.special.entr(share).sum().exp()
    unit = normalize(wide, dim=1)
    cosines = unit.sum(dim=0).square().sum() - unit.square().sum()
    spread = centred.square().mean().sqrt()
    directed = (unit != 0).any(dim=1).sum()
    mean_cosine = torch.where(directed > 1, cosines / (directed * (directed - 1)), torch.nan)
    nan = torch.full_like(rank, torch.nan)
    values = (torch.where(finite, value, nan).to(embeddings.dtype) for value in (spread, rank, mean_cosine))
    return Collapse(*values)


def _positives(labels: Tensor) -> Tensor:
    """Number of other rows with the same label, (N,)."""
    _, group, sizes = labels.unique(return_inverse=True, return_counts=True)
    return sizes[group] - 1


def _mean_over(values: Tensor, mask: Tensor, embeddings: Tensor) -> Tensor:
    """Mean of the values under the mask; NaN when there are none or the embeddings are not finite."""
    mean = torch.where(mask, values, 0).sum() / mask.sum()
    return torch.where(embeddings.isfinite().all(), mean, torch.full_like(mean, torch.nan))


def _at_r(embeddings: Tensor, labels: Tensor, distance: Distance | None) -> tuple[Tensor, Tensor]:
    """R-precision and mean average precision at R."""
    embeddings = checked(embeddings, labels)
    labels = labels.to(embeddings.device)
    positives = _positives(labels)
    largest = max(int(positives.max()), 1) if len(labels) > 1 else 0
    precision, average = torch.zeros_like(embeddings[:, 0]), torch.zeros_like(embeddings[:, 0])
    ranks = torch.arange(1, largest + 1, device=embeddings.device)
    for start, closeness in tiles(embeddings, distance) if largest else ():
        stop = start + len(closeness)
        nearest = closeness.topk(largest, dim=1).indices
        wanted = positives[start:stop].unsqueeze(1)
        hit = (labels[nearest] == labels[start:stop].unsqueeze(1)) & (ranks <= wanted)
        wanted = wanted.clamp(min=1).to(embeddings.dtype)
        precision[start:stop] = (hit / wanted).sum(dim=1)
        average[start:stop] = (hit * hit.cumsum(dim=1) / ranks / wanted).sum(dim=1)
    mask = positives > 0
    return _mean_over(precision, mask, embeddings), _mean_over(average, mask, embeddings)
