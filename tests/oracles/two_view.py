"""Losses over two views of the same samples: row i of one and row i of the other."""

import torch
from torch import Tensor

from tests.oracles.core import COSINE, LP, Batch, Term, define
from tests.oracles.geometry import between


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


@define("BarlowTwinsLoss", LP, "SumReducer")
def barlow_twins(batch: Batch, redundancy_lambda: float = 0.005) -> dict[str, Term]:
    """Zbontar et al. 2021, equations 1 and 2; a constant column is correlated with nothing."""
    size = batch.embeddings.shape[1]
    views = [
        [view[:, d] - view[:, d].mean() for d in range(size)] for view in (batch.embeddings, batch.references)
    ]

    def correlation(a: Tensor, b: Tensor) -> Tensor:
        norms = torch.sqrt((a * a).sum()) * torch.sqrt((b * b).sum())
        return (a * b).sum() / norms if float(norms.detach()) > 0 else batch.zero

    own, others = [], []
    for i in range(size):
        own.append((1 - correlation(views[0][i], views[1][i])) ** 2)
        rest = [correlation(views[0][i], views[1][j]) ** 2 for j in range(size) if j != i]
        others.append(redundancy_lambda * sum(rest, batch.zero))
    return {
        "invariance_loss": Term(own, list(range(size))),
        "redundancy_loss": Term(others, list(range(size))),
    }


@define("SigLIPLoss", COSINE, "MeanReducer", similarity_only=True)
def sig_lip(batch: Batch, log_scale: float = 2.302585092994046, bias: float = -10.0) -> dict[str, Term]:
    """Zhai et al. 2023, equation of section 3.2: t = exp(t'), every pair on its own, divided by the batch."""
    scale = torch.exp(torch.as_tensor(log_scale, dtype=torch.float64))
    values = []
    for i in range(len(batch.embeddings)):
        row = batch.zero
        for j in range(len(batch.references)):
            z = 1.0 if i == j else -1.0
            row = row + torch.logaddexp(batch.zero, -z * (scale * batch.values[i, j] + bias))
        values.append(row)
    return {"loss": Term(values, list(range(len(values))))}


@define("AlignmentUniformityLoss", LP, "MeanReducer")
def alignment_uniformity(
    batch: Batch, alpha: float = 2.0, t: float = 2.0, align_weight: float = 1.0, uniform_weight: float = 1.0
) -> dict[str, Term]:
    """Wang and Isola 2020, section 4.1, and figure 5: the mean of both views' uniformity."""
    apart = [
        align_weight * between(batch.spec, x, y) ** alpha
        for x, y in zip(batch.embeddings, batch.references, strict=True)
    ]
    spread = batch.zero
    for view in (batch.embeddings, batch.references):
        count = len(view)
        potentials = [
            torch.exp(-t * between(batch.spec, view[i], view[j]) ** 2)
            for i in range(count)
            for j in range(i + 1, count)
        ]
        if potentials:
            spread = spread + uniform_weight / 2 * torch.log(sum(potentials) / len(potentials))
    return {
        "alignment_loss": Term(apart, list(range(len(apart)))),
        "uniformity_loss": Term([spread], reduced=True),
    }
