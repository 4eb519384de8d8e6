"""Losses of the InfoNCE family."""

from torch import Tensor

from tests.oracles.core import COSINE, Batch, Term, define, log_sum_exp
from tests.oracles.geometry import cosine


@define("NTXentLoss", COSINE, "MeanReducer")
def ntxent(batch: Batch, temperature: float = 0.07) -> dict[str, Term]:
    """Each positive pair alone against its anchor's negatives; no negatives gives a value of 0."""
    values = []
    for a, p in batch.positives:
        logit = batch.similarity(a, p) / temperature
        others = [batch.similarity(a, n) / temperature for n in batch.of(batch.negatives, a)]
        values.append(log_sum_exp([logit, *others]) - logit)
    return {"loss": Term(values, batch.positives)}


@define("SupConLoss", COSINE, "AvgNonZeroReducer")
def supcon(batch: Batch, temperature: float = 0.1) -> dict[str, Term]:
    """Khosla et al. 2020, equation 2 (the sum outside the log); per anchor that has a positive."""
    values, indices = [], []
    for a in range(len(batch.embeddings)):
        positives = batch.of(batch.positives, a, once=True)
        negatives = batch.of(batch.negatives, a, once=True)
        if positives:
            every = [batch.similarity(a, j) / temperature for j in positives + negatives]
            spread = log_sum_exp(every)
            values.append(sum(spread - v for v in every[: len(positives)]) / len(positives))
            indices.append(a)
    return {"loss": Term(values, indices)}


@define("MultiSupConLoss", COSINE, "AvgNonZeroReducer")
def multi_supcon(batch: Batch, temperature: float = 0.1, threshold: float = 0.5) -> dict[str, Term]:
    """With one label a sample: sets of one overlap wholly or not at all, and any threshold is met."""
    return supcon(batch, temperature)


def multi_supcon_of_sets(
    rows: Tensor,
    sets: list[set[int]],
    references: Tensor,
    ref_sets: list[set[int]],
    same_batch: bool,
    temperature: float = 0.1,
    threshold: float = 0.5,
) -> Tensor:
    """For label sets, over cosines: each positive weighed by its Jaccard overlap; mean of the values > 0."""
    values = []
    for a, own in enumerate(sets):
        others = [j for j in range(len(ref_sets)) if not (same_batch and j == a)]
        overlap = {j: len(own & ref_sets[j]) / max(len(own | ref_sets[j]), 1) for j in others}
        positives = [j for j in others if overlap[j] >= threshold]
        logits = {j: cosine(rows[a], references[j]) / temperature for j in others}
        if positives:
            spread = log_sum_exp(list(logits.values()))
            values.append(sum(overlap[j] * (spread - logits[j]) for j in positives) / len(positives))
    above = [value for value in values if float(value.detach()) > 0]
    return sum(above) / len(above) if above else rows.sum() * 0.0
