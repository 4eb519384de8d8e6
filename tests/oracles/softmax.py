"""Losses of the InfoNCE family."""

from tests.oracles.core import COSINE, Batch, Term, define, log_sum_exp


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
