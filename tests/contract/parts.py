"""Distances and reducers from plain descriptions, for this library and for pytorch-metric-learning alike."""

from typing import Any

import torch

CLASS_WEIGHTS = [0.5, 2.0, 1.0, 0.25, 3.0, 1.5]
SUM_OF_POSITIVES = (
    "MultipleReducers",
    {"reducers": {"pos_loss": "SumReducer"}, "default_reducer": "MeanReducer"},
)

DISTANCES: list[Any] = [
    ("LpDistance", {}),
    ("LpDistance", {"normalize_embeddings": False}),
    ("LpDistance", {"p": 1}),
    ("LpDistance", {"p": 3, "power": 2}),
    ("CosineSimilarity", {}),
    ("DotProductSimilarity", {}),
    ("DotProductSimilarity", {"normalize_embeddings": True}),
    ("SNRDistance", {}),
]
REDUCERS: list[Any] = [
    ("MeanReducer", {}),
    ("SumReducer", {}),
    ("AvgNonZeroReducer", {}),
    ("ThresholdReducer", {"low": 0.3}),
    ("ThresholdReducer", {"low": 0.1, "high": 0.9}),
    ("ClassWeightedReducer", {"weights": CLASS_WEIGHTS}),
    ("PerAnchorReducer", {}),
    ("PerAnchorReducer", {"reducer": ("AvgNonZeroReducer", {})}),
    SUM_OF_POSITIVES,
]


def as_spec(value: Any) -> tuple[str, dict[str, Any]]:
    return (value, {}) if isinstance(value, str) else value


def make_distance(module: Any, spec: Any) -> Any:
    name, options = as_spec(spec)
    return getattr(module, name)(**options)


def make_reducer(module: Any, spec: Any) -> Any:
    name, options = as_spec(spec)
    made = dict(options)
    if "weights" in made:
        made["weights"] = torch.tensor(made["weights"], dtype=torch.float64)
    for inner in {"reducer", "default_reducer"} & set(made):
        made[inner] = make_reducer(module, made[inner])
    if "reducers" in made:
        made["reducers"] = {term: make_reducer(module, how) for term, how in made["reducers"].items()}
    return getattr(module, name)(**made)
