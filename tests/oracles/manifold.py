"""The manifold similarity loss: random walks over a batch and proxies."""

import math

import torch
from torch import Tensor

from tests.oracles.core import COSINE, Batch, Term, define
from tests.oracles.geometry import cosine, is_cosine


@define("ManifoldLoss", COSINE, None, only=is_cosine)
def manifold(
    batch: Batch,
    proxies: Tensor,
    lambda_c: float = 1.0,
    alpha: float = 0.8,
    margin: float = 5e-4,
    num_proxies: int = 50,
) -> dict[str, Term]:
    """Aziere and Todorovic 2019, equations 1 to 6, for one member of the ensemble; labels number proxies."""
    rows = len(batch.embeddings)
    nodes = [*batch.embeddings, *proxies.double()]
    chance = walks(nodes, alpha)
    profile = [chance[rows + k] for k in range(len(proxies))]
    intrinsic, context = [batch.zero], [batch.zero]
    for i in range(rows):
        near = [chance[i, rows + k] for k in range(len(proxies))]
        intrinsic.append(compared(near, batch.labels[i], margin))
        alike = [(chance[i] * other).sum() / (chance[i].norm() * other.norm()) for other in profile]
        context.append(compared(alike, batch.labels[i], margin))
    parts = [sum(part) / max(rows, 1) for part in (intrinsic, context)]
    return {
        "loss": Term([parts[1] if math.isinf(lambda_c) else parts[0] + lambda_c * parts[1]], reduced=True)
    }


def compared(near: list[Tensor], own: int, margin: float) -> Tensor:
    """log(1 + sum of exp(excess)) over the other proxies whose excess over the own one is not below 0."""
    excess = [value - near[own] + margin for k, value in enumerate(near) if k != own]
    counted = [torch.exp(e) for e in excess if float(e.detach()) >= 0]
    return torch.log(1 + sum(counted)) if counted else near[own] * 0.0


def walks(nodes: list[Tensor], alpha: float) -> Tensor:
    """(1 - alpha) times the sum of (alpha S)^t: where a walk that stops with 1 - alpha at each step ends."""
    count = len(nodes)
    weight = [
        [
            torch.exp(torch.relu(cosine(u, v)) / 0.5) if i != j else (u * 0.0).sum()
            for j, v in enumerate(nodes)
        ]
        for i, u in enumerate(nodes)
    ]
    degree = [sum(row) for row in weight]
    step = torch.stack(
        [
            torch.stack([weight[i][j] / (degree[i] * degree[j]).sqrt() for j in range(count)])
            for i in range(count)
        ]
    )
    total = power = torch.eye(count, dtype=torch.float64)
    for _ in range(math.ceil(math.log(1e-18) / math.log(alpha))):
        power = alpha * power @ step
        total = total + power
    return (1 - alpha) * total
