"""Which distances a loss has a meaning under, for `check_distance`."""

from __future__ import annotations

import math

from torch import nn

from losslib.distances import Distance, DotProductSimilarity, LpDistance


def is_cosine(distance: Distance) -> bool:
    """Whether values are cosines: a dot product of normalised rows."""
    return isinstance(distance, DotProductSimilarity) and bool(distance.normalize_embeddings)


def require_cosine(loss: nn.Module, distance: Distance) -> None:
    """Raises TypeError unless values are cosines."""
    if not is_cosine(distance):
        raise TypeError(_message(loss, "CosineSimilarity(), since it needs the cosine of an angle", distance))


def require_bounded(loss: nn.Module, distance: Distance) -> None:
    """Raises TypeError unless values have both ends, so that they can be put into bins."""
    if not all(math.isfinite(end) for end in distance.bounds()):
        raise TypeError(
            _message(loss, "a normalising one, whose values have two ends to bin between", distance)
        )


def require_unit_euclidean(loss: nn.Module, distance: Distance) -> None:
    """Raises TypeError unless dot products of unit rows follow from the values."""
    chord = isinstance(distance, LpDistance) and distance.normalize_embeddings
    if is_cosine(distance) or (chord and (distance.p, distance.power) == (2.0, 1.0)):
        return
    raise TypeError(
        _message(loss, "LpDistance() or CosineSimilarity(), since it is made of angles", distance)
    )


def require_distance(loss: nn.Module, distance: Distance) -> None:
    """Raises TypeError for a similarity."""
    if distance.is_inverted:
        raise TypeError(_message(loss, "a distance, such as LpDistance()", distance))


def _message(loss: nn.Module, expected: str, distance: Distance) -> str:
    return f"{type(loss).__name__}: distance must be {expected}; got {distance!r}"
