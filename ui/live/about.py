"""What stays the same while a run lasts, told to the panel once: names, directions, references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lab import glossary
from lab.brief import brief

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from lab.config import RunConfig

# What alignment 0 means, where it is not said of classes.
ALIGNED = {"views": "both views of each sample equal", "continuous": "every positive pair equal"}
TERMS = (
    "embedding",
    "loss",
    "recall@1",
    "MAP@R",
    "pair weight",
    "spread",
    "effective rank",
    "mean cosine",
    "alignment",
    "uniformity",
    "gradient norm",
    "force",
)


def describe(
    config: RunConfig,
    classes: NDArray[np.int32],
    class_names: Sequence[str],
    chance: float | None = None,
) -> dict[str, Any]:
    """Class names, the distance and which way is closer, chance, and the terms the panel explains.

    Args:
        config: of the run.
        classes: of the points of the map, (N,).
        class_names: C names.
        chance: recall@1 of random embeddings; None for that of positives of equal labels.
    """
    from losslib import catalog

    distance = catalog.get(config.loss).default_distance()
    shares = np.bincount(classes) / max(1, len(classes))
    return {
        **class_labels(class_names),
        "data": config.data,
        "loss": config.loss,
        "dim": config.dim,
        "pairwise": hasattr(catalog.get(config.loss), "pair_weights"),
        "distance": distance.title,
        "inverted": bool(distance.is_inverted),
        "unit_circle": config.dim == 2 and config.output == "l2",
        "map_note": map_note(config.dim, config.output),
        "quality_on": "the points themselves" if config.encoder == "free" else "held-out data",
        "aligned": ALIGNED.get(config.pairing, "every class a point"),
        "chance": float((shares**2).sum()) if chance is None else chance,
        "glossary": {term: glossary.define(term) for term in TERMS},
    }


def class_labels(names: Sequence[str]) -> dict[str, list[str]]:
    """Names of classes as legends show them, and, where some are cut, whole for who points at them."""
    shown = brief(names)
    return {"classes": list(shown)} | ({} if shown == tuple(names) else {"labels": list(names)})


def map_note(dim: int, output: str) -> str:
    """How the map comes from the embeddings."""
    if dim > 2:
        return f"seen in the plane that keeps most of the variance of {dim} coordinates (PCA)"
    if dim == 1:
        return "the one coordinate along the horizontal axis"
    if output == "l2":
        return "on the unit circle, each drawn up to 6 % inside or outside so that none hides another"
    return "the two coordinates as they are"
