"""Losses against centroids of classes, and against every row as a class of its own."""

import math

import torch
from torch import Tensor

from tests.oracles.core import COSINE, Batch, Term, define, log_sum_exp
from tests.oracles.geometry import between, unit


@define(
    "GE2ELoss", COSINE, "MeanReducer", similarity_only=True, more=({"variant": "contrast", "scale": 2.0},)
)
def ge2e(batch: Batch, variant: str = "softmax", scale: float = 10.0, bias: float = -5.0) -> dict[str, Term]:
    """Wan et al. 2018, equations 6 and 7 (softmax), 8 (contrast) and 9 (centroids without the row itself)."""

    def mean(members: list[int]) -> Tensor:
        return sum(rows[m] for m in members) / len(members)

    normalises = batch.spec[0] == "CosineSimilarity" or batch.spec[1].get("normalize_embeddings", False)
    rows = [unit(row) if normalises else row for row in batch.references]
    members = {c: [j for j, other in enumerate(batch.ref_labels) if other == c] for c in batch.ref_labels}
    values, indices = [], []
    for i, (x, y) in enumerate(zip(batch.embeddings, batch.labels, strict=True)):
        own = [j for j in members.get(y, []) if batch.has_reference or j != i]
        if not own:
            continue
        right = scale * between(batch.spec, x, mean(own)) + bias
        wrong = [scale * between(batch.spec, x, mean(m)) + bias for c, m in members.items() if c != y]
        if variant == "softmax":
            values.append(log_sum_exp([right, *wrong]) - right)
        else:
            hardest = max(wrong, key=lambda v: float(v.detach())).sigmoid() if wrong else batch.zero
            values.append(1 - right.sigmoid() + hardest)
        indices.append(i)
    return {"loss": Term(values, indices)}


@define("InstanceLoss", COSINE, "MeanReducer", similarity_only=True)
def instance(batch: Batch, gamma: float = 64.0) -> dict[str, Term]:
    """Zheng et al. 2020, equation 5, with the batch's rows for classifier: the row's own class is right."""
    values, indices = [], []
    for i in range(len(batch.embeddings)):
        right = [gamma * batch.values[i, j] for j in batch.of(batch.positives, i, once=True)]
        wrong = [gamma * batch.values[i, j] for j in batch.of(batch.negatives, i, once=True)]
        if not batch.has_reference and (right or wrong):
            row = batch.embeddings[i]
            right.append(gamma * between(batch.spec, row, row))
        if right:
            # log(1 + exp(x)) keeps values too small to change the 1: they are above 0 and count in the mean
            far = log_sum_exp(wrong) - log_sum_exp(right) if wrong else batch.zero - math.inf
            values.append(torch.logaddexp(batch.zero, far))
            indices.append(i)
    return {"loss": Term(values, indices)}
