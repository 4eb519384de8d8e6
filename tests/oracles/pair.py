"""Pair losses: contrastive, cosine embedding, threshold-consistent margin, decoupled, multi-similarity."""

import torch
from torch import Tensor

from tests.oracles.core import COSINE, LP, Batch, Term, define, log_sum_exp
from tests.oracles.geometry import cosine


@define("ContrastiveLoss", LP, "AvgNonZeroReducer", more=({"squared": True, "pos_margin": 0.3},))
def contrastive(
    batch: Batch, pos_margin: float = 0.0, neg_margin: float = 1.0, squared: bool = False
) -> dict[str, Term]:
    """Hadsell et al. 2006; hinges not squared unless asked, then halved as in equation 4 of the paper."""

    def shape(violation: Tensor) -> Tensor:
        hinge = torch.relu(violation)
        return hinge**2 / 2 if squared else hinge

    near = [shape(batch.gap(batch.values[a, p], pos_margin)) for a, p in batch.positives]
    far = [shape(batch.gap(neg_margin, batch.values[a, n])) for a, n in batch.negatives]
    return {"pos_loss": Term(near, batch.positives), "neg_loss": Term(far, batch.negatives)}


@define("CosineEmbeddingLoss", COSINE, "MeanReducer", similarity_only=True)
def cosine_embedding(batch: Batch, margin: float = 0.0) -> dict[str, Term]:
    values = [1 - batch.values[a, p] for a, p in batch.positives]
    values += [torch.relu(batch.values[a, n] - margin) for a, n in batch.negatives]
    return {"loss": Term(values, batch.positives + batch.negatives)}


def cosine_embedding_of_rows(x1: Tensor, x2: Tensor, target: Tensor, margin: float = 0.0) -> Tensor:
    """The direct form: row i of x1 with row i of x2, similar (1) or not (-1)."""
    values = []
    for u, v, t in zip(x1.double(), x2.double(), target.tolist(), strict=True):
        s = cosine(u, v)
        values.append(1 - s if t == 1 else torch.relu(s - margin))
    return sum(values) / len(values)


@define("ThresholdConsistentMarginLoss", COSINE, None, similarity_only=True)
def threshold_consistent_margin(
    batch: Batch,
    lambda_plus: float = 1.0,
    lambda_minus: float = 1.0,
    margin_plus: float = 0.9,
    margin_minus: float = 0.5,
) -> dict[str, Term]:
    """Both indicators include equality, and pairs at the threshold count in the mean with value 0."""
    near = [margin_plus - s for s in (batch.values[a, p] for a, p in batch.positives) if s <= margin_plus]
    far = [s - margin_minus for s in (batch.values[a, n] for a, n in batch.negatives) if s >= margin_minus]
    total = batch.zero
    if near:
        total = total + lambda_plus * sum(near) / len(near)
    if far:
        total = total + lambda_minus * sum(far) / len(far)
    return {"loss": Term([total], reduced=True)}


@define("DecoupledContrastiveLoss", COSINE, "MeanReducer")
def decoupled_contrastive(
    batch: Batch, temperature: float = 0.1, sigma: float | None = None
) -> dict[str, Term]:
    """Yeh et al. 2022, equations 6 and 7; the weight is part of the graph."""
    similarities = [batch.similarity(a, p) for a, p in batch.positives]
    weights = [torch.ones_like(s) for s in similarities]
    if sigma is not None and similarities:
        # exp(s / sigma) / mean of the same, each shifted by the log of the sum
        total = log_sum_exp([s / sigma for s in similarities])
        weights = [2 - len(similarities) * torch.exp(s / sigma - total) for s in similarities]
    values, indices = [], []
    for (a, p), s, w in zip(batch.positives, similarities, weights, strict=True):
        negatives = batch.of(batch.negatives, a)
        if negatives:
            spread = log_sum_exp([batch.similarity(a, n) / temperature for n in negatives])
            values.append(-w * s / temperature + spread)
            indices.append((a, p))
    return {"loss": Term(values, indices)}


@define("MultiSimilarityLoss", COSINE, "MeanReducer")
def multi_similarity(
    batch: Batch, alpha: float = 2.0, beta: float = 50.0, base: float = 0.5
) -> dict[str, Term]:
    """Wang et al. 2019, equation 15 without mining; one value per anchor that has at least one pair."""
    values, indices = [], []
    for a in range(len(batch.embeddings)):
        near = [alpha * batch.gap(batch.values[a, p], base) for p in batch.of(batch.positives, a, once=True)]
        far = [beta * batch.gap(base, batch.values[a, n]) for n in batch.of(batch.negatives, a, once=True)]
        if near or far:
            # log(1 + sum of exponentials): the 1 is an exponential of 0; it gives 0 for an empty side
            pulled = log_sum_exp([batch.zero, *near]) / alpha
            pushed = log_sum_exp([batch.zero, *far]) / beta
            values.append(pulled + pushed)
            indices.append(a)
    return {"loss": Term(values, indices)}
