"""Losses over whole rankings or histograms."""

import math

import torch
from torch import Tensor

from tests.oracles.anchors import SQUARED, anchors
from tests.oracles.core import COSINE, LP, Batch, Term, define
from tests.oracles.geometry import INVERTED, ends, is_bounded


@define("FastAPLoss", SQUARED, "MeanReducer", only=is_bounded)
def fast_ap(batch: Batch, num_bins: int = 10) -> dict[str, Term]:
    """Cakir et al. 2019: average precision of distances put into soft bins; anchors with a positive."""
    low, high = ends(batch.spec)
    width = (high - low) / num_bins

    def histogram(values: list[Tensor]) -> list[Tensor]:
        return [
            sum((torch.relu(1 - (v - width * k).abs() / width) for v in values), batch.zero)
            for k in range(num_bins + 1)
        ]

    values, indices = [], []
    for a in anchors(batch):
        positives = batch.of(batch.positives, a, once=True)
        negatives = batch.of(batch.negatives, a, once=True)
        if not positives:
            continue
        near = histogram([batch.gap(batch.values[a, p], high if batch.inverted else low) for p in positives])
        far = histogram([batch.gap(batch.values[a, n], high if batch.inverted else low) for n in negatives])
        precision, seen, seen_near = batch.zero, batch.zero, batch.zero
        for h, g in zip(near, far, strict=True):
            seen, seen_near = seen + h + g, seen_near + h
            if float((h * seen_near).detach()) > 0:
                precision = precision + h * seen_near / seen
        values.append(1 - precision / len(positives))
        indices.append(a)
    return {"loss": Term(values, indices)}


def own_class(batch: Batch, a: int) -> list[int]:
    """An anchor's positives, and the anchor itself where they come from its own batch."""
    itself = set() if batch.has_reference else {a}
    return sorted(itself | set(batch.of(batch.positives, a)))


@define("SmoothAPLoss", COSINE, "MeanReducer", similarity_only=True)
def smooth_ap(batch: Batch, temperature: float = 0.01) -> dict[str, Term]:
    """Brown et al. 2020: ranks by sigmoids; anchors with a positive, each among its own."""
    values = []
    chosen = [a for a in anchors(batch) if batch.of(batch.positives, a)]
    for a in chosen:
        same = own_class(batch, a)
        everyone = sorted({*same, *batch.of(batch.negatives, a, once=True)})

        def rank(item: int, among: list[int], a: int = a) -> Tensor:
            gaps = [batch.values[a, j] - batch.values[a, item] for j in among if j != item]
            return 1 + sum((torch.sigmoid(gap / temperature) for gap in gaps), batch.zero)

        precision = sum(rank(p, same) / rank(p, everyone) for p in same) / len(same)
        values.append(1 - precision)
    return {"loss": Term(values, chosen)}


@define("HistogramLoss", COSINE, None, only=is_bounded)
def histogram(batch: Batch, num_bins: int = 100) -> dict[str, Term]:
    """Ustinova and Lempitsky 2016, equations 2 to 5, over unordered pairs that stand in a triplet."""
    low, high = ends(batch.spec)
    width = (high - low) / num_bins
    least = low if batch.inverted else -high

    def density(pairs: set[tuple[int, int]]) -> list[Tensor]:
        found = [batch.zero] * (num_bins + 1)
        for i, j in sorted(pairs):
            s = batch.similarity(i, j)
            k = max(0, min(math.floor((float(s.detach()) - least) / width), num_bins - 1))
            upper = (s - least) / width - k
            found[k + 1] = found[k + 1] + upper / len(pairs)
            found[k] = found[k] + (1 - upper) / len(pairs)
        return found

    if not batch.triplets:
        return {"loss": Term([batch.zero], reduced=True)}

    def once(i: int, j: int) -> tuple[int, int]:
        return (i, j) if batch.has_reference else (min(i, j), max(i, j))

    near = density({once(a, p) for a, p, _ in batch.triplets})
    far = density({once(a, n) for a, _, n in batch.triplets})
    total, below = batch.zero, batch.zero
    for h, g in zip(near, far, strict=True):
        below = below + h
        total = total + g * below
    return {"loss": Term([total], reduced=True)}


@define("RankedListLoss", LP, "MeanReducer", only=lambda spec: spec[0] not in INVERTED)
def ranked_list(
    batch: Batch,
    margin: float = 0.4,
    neg_temperature: float = 10.0,
    imbalance: float = 0.5,
    alpha: float | None = None,
    pos_temperature: float = 0.0,
) -> dict[str, Term]:
    """Wang et al. 2019, equations 6 to 9; each anchor's violating pairs, weighted by how far they violate.

    The defaults of margin and temperature are those of the paper's experiments.
    """
    border = 1 + margin / 2 if alpha is None else alpha
    values = []
    for a in anchors(batch):
        near = [v for v in (batch.values[a, p] for p in batch.of(batch.positives, a)) if v > border - margin]
        far = [v for v in (batch.values[a, n] for n in batch.of(batch.negatives, a)) if v < border]
        pull, push = batch.zero, batch.zero
        if near:
            weights = [torch.exp(pos_temperature * (v - (border - margin))) for v in near]
            pull = sum(w * (v - (border - margin)) for w, v in zip(weights, near, strict=True)) / sum(weights)
        if far:
            weights = [torch.exp(neg_temperature * (border - v)) for v in far]
            push = sum(w * (border - v) for w, v in zip(weights, far, strict=True)) / sum(weights)
        values.append((1 - imbalance) * pull + imbalance * push)
    return {"loss": Term(values, list(anchors(batch)))}


@define("PNPLoss", COSINE, None, similarity_only=True)
def pnp(
    batch: Batch, b: float = 2.0, alpha: float = 1.0, anneal: float = 0.01, variant: str = "O"
) -> dict[str, Term]:
    """Li et al. 2022: negatives ranked before each positive; anchors that have one, each among its own."""
    rows = []
    for a in (a for a in anchors(batch) if batch.of(batch.positives, a)):
        same = own_class(batch, a)
        negatives = batch.of(batch.negatives, a, once=True)
        found = []
        for p in same:
            gaps = [batch.values[a, n] - batch.values[a, p] for n in negatives]
            before = sum((torch.sigmoid((gap / anneal).clamp(-50, 50)) for gap in gaps), batch.zero)
            found.append(
                {
                    "O": before,
                    "Ds": torch.log(1 + before),
                    "Dq": (1 + before) ** -alpha,
                    "Iu": (1 + before) * torch.log(1 + before),
                    "Ib": (b * before - torch.log(1 + b * before)) / b**2,
                }[variant]
            )
        rows.append(sum(found) / len(found))
    if not rows:  # nothing to rank: 0 under every variant
        return {"loss": Term([batch.zero], reduced=True)}
    total = sum(rows, batch.zero) / len(rows)
    return {"loss": Term([1 - total if variant == "Dq" else total], reduced=True)}
