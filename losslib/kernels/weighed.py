"""A sum of distances whose weights are constants made from them, with its gradient in one pass."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import is_plain
from losslib.kernels.function import Found, Inputs, apply
from losslib.kernels.matrix import Matrix
from losslib.kernels.proxies import of_distance
from losslib.pair_matrix import Pairs
from losslib.precision import known_on_cpu, transforming


def weighed(loss: Any, batch: Batch) -> tuple[Tensor, Any] | None:
    """The sum, 0-d, and what else `loss.weights(pairs)` gives besides the weights (B, R) of the distances.

    None where the plain form is to be taken. A similarity counts as a distance negated.
    """
    x, itself = batch.embeddings, batch.indices is None and batch.masks is None and batch.ref_emb is None
    if not itself or not known_on_cpu(x) or transforming() or is_plain():
        return None  # is_plain last: it cannot be asked while compiling
    if len(x) < 2 or batch.labels is None or of_distance(loss.distance):
        return None
    wanted, sign = torch.is_grad_enabled() and x.requires_grad, -1.0 if loss.distance.is_inverted else 1.0
    found: list[Any] = []

    def run(given: Inputs) -> Found:
        matrix = Matrix(given.embeddings, None, loss.distance)
        weights, besides = loss.weights(Pairs(matrix.values, batch, loss.distance))
        found.extend((weights, besides))
        value = (matrix.values * weights).sum() * sign
        slope = weights * sign
        return Found(value, matrix.back(slope, True, False, False)[0] if wanted else None)

    def again(given: Inputs) -> Tensor:
        values: Tensor = loss.distance(given.embeddings)
        return (values * found[0]).sum() * sign

    return apply(Inputs(x), run, again), found[1]
