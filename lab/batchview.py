"""What the step's batch looks like to the loss: active share, terms, pair weights, heaviest pairs."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lab.frame import BatchView, PairShare, TermSummary
from lab.randomness import undisturbed

TOP = 16


class BatchLook(NamedTuple):
    """The batch as a frame shows it."""

    active_share: float
    terms: tuple[TermSummary, ...]
    view: BatchView


def look_at_batch(loss: nn.Module, embeddings: Tensor, labels: Tensor, index: Tensor) -> BatchLook:
    """One more pass through the loss, on detached embeddings; training goes on as if it had not been.

    A loss that is no function of pairs has no pair weights: the view's are 0 then, and the active share NaN.

    Args:
        loss: the loss as it is before the update.
        embeddings: (B, D), detached.
        labels: (B,).
        index: data set indices, (B,).
    """
    order = torch.argsort(labels, stable=True)
    embeddings, labels, index = embeddings[order], labels[order], index[order.to(index.device)]
    seen: Any = copy.deepcopy(loss) if any(True for _ in loss.buffers()) else loss
    with undisturbed():
        weights = seen.pair_weights(embeddings, labels) if hasattr(seen, "pair_weights") else None
        with torch.no_grad():
            terms = seen.loss_terms(embeddings, labels)
    summaries = tuple(_summary(name, term) for name, term in terms.items())
    shares = np.zeros((len(labels), len(labels)), np.uint8) if weights is None else _shares(weights)
    view = BatchView(
        index.cpu().numpy().astype(np.int32),
        labels.cpu().numpy().astype(np.int32),
        shares,
        () if weights is None else _heaviest(weights, index.cpu()),
    )
    return BatchLook(math.nan if weights is None else float(weights.active_share), summaries, view)


def _shares(weights: Any) -> NDArray[np.uint8]:
    """The size of each pair weight in steps of 1/255 of the largest, (B, B)."""
    matrix = weights.weights.abs()
    largest = matrix.max().clamp(min=torch.finfo(matrix.dtype).tiny)
    steps: NDArray[np.uint8] = (matrix / largest * 255).round().to(torch.uint8).cpu().numpy()
    return steps


def _summary(name: str, term: Any) -> TermSummary:
    return TermSummary(name, int(term.count()), float(term.sum()), int(term.count_positive()))


def _heaviest(weights: Any, index: Tensor) -> tuple[PairShare, ...]:
    """The pairs that carry most of the gradient; both directions of a pair are added."""
    both = (weights.weights + weights.weights.T).triu(diagonal=1)
    size = both.abs()
    total = size.sum()
    count = min(TOP, both.numel())
    shares, places = (size / torch.where(total > 0, total, 1)).flatten().topk(count)
    columns = both.shape[1]
    rows, others = places // columns, places % columns
    listed = zip(
        index[rows.cpu()].tolist(),
        index[others.cpu()].tolist(),
        weights.positive[rows, others].tolist(),
        weights.values[rows, others].tolist(),
        both[rows, others].tolist(),
        shares.tolist(),
        strict=True,
    )
    return tuple(PairShare(*pair) for pair in listed if pair[-1] > 0)
