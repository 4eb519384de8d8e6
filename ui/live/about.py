"""What stays the same while a run lasts, told to the panel once: names, directions, references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lab import glossary

if TYPE_CHECKING:
    from lab.scheduler import LiveRun

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
)


def describe(run: LiveRun) -> dict[str, Any]:
    """Class names, the distance and which way is closer, chance, and the terms the panel explains."""
    from losslib import catalog

    config, data, probe = run.config, run.data, np.asarray(run.probe)
    loss = catalog.get(config.loss)
    distance = loss(**dict(config.loss_options)).distance
    shares = np.bincount(data.labels[probe]) / max(1, len(probe))
    return {
        "classes": list(data.class_names),
        "data": config.data,
        "loss": config.loss,
        "dim": config.dim,
        "distance": distance.title,
        "inverted": bool(distance.is_inverted),
        "unit_circle": config.dim == 2 and config.output == "l2",
        "map_note": map_note(config.dim, config.output),
        "quality_on": "the points themselves" if config.encoder == "free" else "held-out data",
        "chance": float((shares**2).sum()),
        "glossary": {term: glossary.define(term) for term in TERMS},
    }


def map_note(dim: int, output: str) -> str:
    """How the map comes from the embeddings."""
    if dim > 2:
        return f"seen in the plane that keeps most of the variance of {dim} coordinates (PCA)"
    if dim == 1:
        return "the one coordinate along the horizontal axis"
    return "on the unit circle" if output == "l2" else "the two coordinates as they are"
