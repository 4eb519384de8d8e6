"""Distances and similarities of two rows, one pair at a time, in float64."""

from typing import Any

import torch
from torch import Tensor

Spec = tuple[str, dict[str, Any]]

INVERTED = {"CosineSimilarity", "DotProductSimilarity"}


def is_cosine(spec: Spec) -> bool:
    """Whether values are cosines, from -1 to 1."""
    name, options = spec
    return name == "CosineSimilarity" or (
        name == "DotProductSimilarity" and options.get("normalize_embeddings", False)
    )


def is_bounded(spec: Spec) -> bool:
    """Whether values have a least and a greatest: cosines, and distances of normalised rows."""
    name, options = spec
    return is_cosine(spec) or (name == "LpDistance" and options.get("normalize_embeddings", True))


def ends(spec: Spec) -> tuple[float, float]:
    """Least and greatest value of a bounded distance or similarity."""
    return (-1.0, 1.0) if is_cosine(spec) else (0.0, 2.0 ** spec[1].get("power", 1))


def is_unit_euclidean(spec: Spec) -> bool:
    """Whether values follow from the dot products of unit rows: cosines and their chords."""
    name, options = spec
    plain = options.get("p", 2) == 2 and options.get("power", 1) == 1
    return is_cosine(spec) or (name == "LpDistance" and is_bounded(spec) and plain)


def unit(row: Tensor, p: float = 2) -> Tensor:
    """The row divided by its p-norm; a row of exact zeros stays zero and has no gradient."""
    norm = (row.abs() ** p).sum() ** (1 / p)
    return row / norm if float(norm.detach()) > 0 else row * 0.0


def lp(u: Tensor, v: Tensor, normalize_embeddings: bool = True, p: float = 2, power: float = 1) -> Tensor:
    if normalize_embeddings:
        u, v = unit(u, p), unit(v, p)
    total = ((u - v).abs() ** p).sum()
    if float(total.detach()) == 0.0:
        return total * 0.0  # coincident points have no direction: gradient 0
    return total ** (power / p)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return (unit(u) * unit(v)).sum()


def dot(u: Tensor, v: Tensor, normalize_embeddings: bool = False) -> Tensor:
    return cosine(u, v) if normalize_embeddings else (u * v).sum()


def snr(u: Tensor, v: Tensor) -> Tensor:
    """Variance of the difference over variance of the anchor, both rows normalised first.

    An anchor of equal entries has no signal: its distances are stated to be 0.
    """
    u, v = unit(u), unit(v)
    noise, signal = u - v, ((u - u.mean()) ** 2).sum()
    if float(signal.detach()) < 1e-28:
        return noise.sum() * 0.0
    return ((noise - noise.mean()) ** 2).sum() / signal


PAIRWISE = {"LpDistance": lp, "CosineSimilarity": cosine, "DotProductSimilarity": dot, "SNRDistance": snr}


def between(spec: Spec, u: Tensor, v: Tensor) -> Tensor:
    """Distance or similarity of two rows."""
    name, options = spec
    return PAIRWISE[name](u, v, **options)


def matrix(spec: Spec, x: Tensor, y: Tensor) -> Tensor:
    """All distances or similarities between the rows of x (B, D) and of y (R, D), shape (B, R)."""
    if not len(x) or not len(y):
        return (x.sum() + y.sum()) * torch.zeros(len(x), len(y), dtype=torch.float64)
    return torch.stack([torch.stack([between(spec, u, v) for v in y]) for u in x])
