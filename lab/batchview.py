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
from lab.pairing import Paired
from lab.randomness import undisturbed

TOP = 16
SAME_WEIGHT = 1e-6  # of the largest: what summing in another order changes is no difference


class BatchLook(NamedTuple):
    """The batch as a frame shows it."""

    active_share: float
    terms: tuple[TermSummary, ...]
    view: BatchView


def look_at_batch(
    loss: nn.Module, embeddings: Tensor, labels: Tensor, index: Tensor, paired: Paired | None = None
) -> BatchLook:
    """One more pass through the loss, on detached embeddings; training goes on as if it had not been.

    A loss that is no function of pairs has no pair weights: the view's are 0 then, and the active share NaN.

    Args:
        loss: the loss as it is before the update.
        embeddings: (B, D), detached.
        labels: (B,).
        index: data set indices, (B,).
        paired: what the loss is called with; None for the labels.
    """
    paired = Paired(labels, index, {"labels": labels}, labels) if paired is None else paired
    paired, order = paired.ordered()
    embeddings = embeddings[order]
    seen: Any = copy.deepcopy(loss) if any(True for _ in loss.buffers()) else loss
    with undisturbed():
        weights = seen.pair_weights(embeddings, **paired.inputs) if hasattr(seen, "pair_weights") else None
        with torch.no_grad():
            terms = _terms(seen, embeddings, paired.inputs)
    summaries = tuple(_summary(name, term) for name, term in terms.items())
    rows, reach = len(embeddings), paired.reach()
    index = paired.index.cpu()
    view = BatchView(
        index.numpy().astype(np.int32),
        paired.labels.cpu().numpy().astype(np.int32),
        np.zeros((rows, rows), np.uint8) if weights is None else _shares(weights),
        () if weights is None else _heaviest(weights, index, seen.distance.is_inverted),
        None if reach is None else reach.cpu().numpy().astype(np.int32),
    )
    return BatchLook(math.nan if weights is None else float(weights.active_share), summaries, view)


def _terms(loss: Any, embeddings: Tensor, inputs: dict[str, Any]) -> dict[str, Any]:
    """The loss's terms; a loss of two views has no inputs, and its rows stand view beside view."""
    if inputs:
        return dict(loss.loss_terms(embeddings, **inputs))
    return dict(loss.loss_terms(embeddings[0::2], ref_emb=embeddings[1::2]))


def _shares(weights: Any) -> NDArray[np.uint8]:
    """The size of each pair weight in steps of 1/255 of the largest, (B, B)."""
    matrix = weights.weights.abs()
    largest = matrix.max().clamp(min=torch.finfo(matrix.dtype).tiny)
    steps: NDArray[np.uint8] = (matrix / largest * 255).round().to(torch.uint8).cpu().numpy()
    return steps


def _summary(name: str, term: Any) -> TermSummary:
    return TermSummary(name, int(term.count()), float(term.sum()), int(term.count_positive()))


def _heaviest(weights: Any, index: Tensor, inverted: bool) -> tuple[PairShare, ...]:
    """The pairs that carry most of the gradient; both directions of a pair are added.

    A hinge gives every pair beyond it the same weight; of such pairs the hardest come first.
    """
    both = (weights.weights + weights.weights.T).triu(diagonal=1).flatten()
    size = both.abs()
    total, count = size.sum(), min(TOP, both.numel())
    least = size.topk(count).values[-1:] * (1 - SAME_WEIGHT)
    held = ((size >= least) & (size > 0)).nonzero()[:, 0]
    values, positive = weights.values.flatten()[held], weights.positive.flatten()[held]
    levels = (size[held].double() / size.max() / SAME_WEIGHT).round()
    order = (
        (levels + 0.5 * _hardness(values.double(), positive, inverted)).topk(min(count, len(held))).indices
    )
    places, columns = held[order], weights.weights.shape[1]
    listed = zip(
        index[(places // columns).cpu()].tolist(),
        index[(places % columns).cpu()].tolist(),
        positive[order].tolist(),
        values[order].tolist(),
        both[places].tolist(),
        (size[places] / total).tolist(),
        strict=True,
    )
    return tuple(PairShare(*pair) for pair in listed)


def _hardness(values: Tensor, positive: Tensor, inverted: bool) -> Tensor:
    """From 0 to 1 for each pair among those of its side, (P,): 1 for the farthest positive and for the
    nearest negative."""
    outward = torch.where(positive != inverted, values, -values)
    hardness = torch.zeros_like(values)
    for side in (positive, ~positive):
        of_side = outward[side]
        if len(of_side):
            span = of_side.max() - of_side.min()
            hardness[side] = (of_side - of_side.min()) / torch.where(span > 0, span, 1.0)
    return hardness
