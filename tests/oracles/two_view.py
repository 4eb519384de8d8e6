"""Losses over two views of the same samples: row i of one and row i of the other."""

import torch
from torch import Tensor

from tests.oracles.core import LP, Batch, Term, define


def variance(column: Tensor) -> Tensor:
    """Unbiased variance of a column."""
    return ((column - column.mean()) ** 2).sum() / (len(column) - 1)


@define("VICRegLoss", LP, "MeanReducer")
def vicreg(
    batch: Batch,
    invariance_lambda: float = 25.0,
    variance_mu: float = 25.0,
    covariance_v: float = 1.0,
    eps: float = 1e-4,
) -> dict[str, Term]:
    """Bardes et al. 2022, equations 1 to 6; the variance hinge of both views is halved."""
    size = batch.embeddings.shape[1]
    found = {
        "invariance_loss": Term(
            [
                invariance_lambda * ((x - y) ** 2).mean()
                for x, y in zip(batch.embeddings, batch.references, strict=True)
            ]
        )
    }
    spread = batch.zero
    for number, view in enumerate((batch.embeddings, batch.references), start=1):
        columns = [view[:, d] for d in range(size)]
        hinges = [variance_mu * torch.relu(1 - torch.sqrt(variance(c) + eps)) / 2 for c in columns]
        found[f"variance_loss{number}"] = Term(hinges)
        for i in range(size):
            for j in range(size):
                if i != j:
                    together = ((columns[i] - columns[i].mean()) * (columns[j] - columns[j].mean())).sum()
                    spread = spread + (together / (len(view) - 1)) ** 2 / size
    found["covariance_loss"] = Term([covariance_v * spread], reduced=True)
    return found
