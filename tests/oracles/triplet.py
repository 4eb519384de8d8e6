"""Losses over triplets."""

import math
from typing import Any

import torch
from torch import Tensor

from tests.oracles.core import COSINE, LP, Batch, Term, define
from tests.oracles.geometry import INVERTED, Spec, between


@define("TripletMarginLoss", LP, "AvgNonZeroReducer", more=({"swap": True, "smooth_loss": True},))
def triplet_margin(
    batch: Batch, margin: float = 0.2, swap: bool = False, smooth_loss: bool = False
) -> dict[str, Term]:
    values = []
    for a, p, n in batch.triplets:
        ap, an = batch.values[a, p], batch.values[a, n]
        if swap:  # the harder of the two: the negative's distance to the anchor or to the positive
            pn = batch.between_references(p, n)
            an = torch.maximum(an, pn) if batch.inverted else torch.minimum(an, pn)
        violation = batch.gap(ap, an) + margin
        smooth = torch.logaddexp(violation, torch.zeros_like(violation))
        values.append(smooth if smooth_loss else torch.relu(violation))
    return {"loss": Term(values, batch.triplets)}


@define("TripletLoss", COSINE, "MeanReducer")
def triplet(batch: Batch, margin: float = 0.35) -> dict[str, Term]:
    """The distance is 1 - cosine, so d_ap - d_an is s_an - s_ap."""
    values = [
        torch.relu(batch.gap(batch.values[a, p], batch.values[a, n]) + margin) for a, p, n in batch.triplets
    ]
    return {"loss": Term(values, batch.triplets)}


def triplet_of_rows(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 0.35, spec: Spec = COSINE
) -> Tensor:
    """The direct form: row i of each of the three tensors."""
    values = []
    for u, p, n in zip(anchor.double(), positive.double(), negative.double(), strict=True):
        ap, an = between(spec, u, p), between(spec, u, n)
        values.append(torch.relu((an - ap if spec[0] in INVERTED else ap - an) + margin))
    return sum(values) / len(values)


@define(
    "MarginLoss",
    LP,
    "DivisorReducer",
    more=(
        {"nu": 0.3, "learn_beta": True},
        {"nu": 0.3, "learn_beta": True, "num_classes": 6},
        {"num_classes": 7, "beta": 0.8},
    ),
)
def margin(
    batch: Batch,
    margin: float = 0.2,
    nu: float = 0.0,
    beta: Any = 1.2,
    learn_beta: bool = False,
    num_classes: int | None = None,
) -> dict[str, Term]:
    """Wu et al. 2017, equation 5, over triplets: a pair counts once per triplet that contains it.

    beta is a number, or a tensor of shape (1,) or (num_classes,) when its gradient is wanted.
    """
    betas = torch.as_tensor(beta, dtype=torch.float64).reshape(-1)
    betas = betas.expand(num_classes or 1) if len(betas) == 1 else betas
    values, penalties, active = [], [], 0
    for a, p, n in batch.triplets:
        own = betas[batch.labels[a] if num_classes is not None and batch.labels is not None else 0]
        pull = torch.relu(batch.gap(batch.values[a, p], own) + margin)
        push = torch.relu(batch.gap(own, batch.values[a, n]) + margin)
        values.append(pull + push)
        penalties.append(nu * own)
        active += int(pull > 0) + int(push > 0)
    found = {"loss": Term(values, batch.triplets, divisor=active)}
    if learn_beta:
        found["beta_reg_loss"] = (
            Term([nu * betas[0] if batch.triplets else batch.zero], reduced=True)
            if num_classes is None
            else Term(penalties, [a for a, _, _ in batch.triplets], divisor=active)
        )
    return found


@define("DynamicSoftMarginLoss", LP, None, more=({"min_val": -1.0, "num_bins": 7},))
def dynamic_soft_margin(
    batch: Batch, min_val: float = -2.0, num_bins: int = 10, momentum: float = 0.01
) -> dict[str, Term]:
    """Zhang and Rusinkiewicz 2019, equations 5 to 7, over all triplets; the first batch of a run.

    The batch's own histogram is then the memory, whatever the momentum.
    """
    gaps = gaps_of(batch)
    return weighed_by(gaps, histogram_of(gaps, min_val, num_bins), min_val, batch)


def gaps_of(batch: Batch) -> list[Tensor]:
    return [batch.gap(batch.values[a, p], batch.values[a, n]) for a, p, n in batch.triplets]


def bin_of(gap: Tensor, min_val: float, num_bins: int) -> tuple[int, float]:
    """The bin that holds a gap, and how far up in it; on an edge, up to rounding, the one above."""
    place = (float(gap.detach()) - min_val) / (-2 * min_val / num_bins)
    k = min(max(math.floor(place + 1e-12), 0), num_bins - 1)
    return k, min(max(place - k, 0.0), 1.0)


def histogram_of(gaps: list[Tensor], min_val: float, num_bins: int) -> list[float]:
    """Share of the gaps at each node between bins, each gap shared by the two nodes beside it."""
    nodes = [0.0] * (num_bins + 1)
    for gap in gaps:
        k, upper = bin_of(gap, min_val, num_bins)
        nodes[k] += (1 - upper) / len(gaps)
        nodes[k + 1] += upper / len(gaps)
    return nodes


def weighed_by(gaps: list[Tensor], memory: list[float], min_val: float, batch: Batch) -> dict[str, Term]:
    """Mean of the gaps, each times the share of the memory at or below its bin's lower node, a constant."""
    bins = [bin_of(gap, min_val, len(memory) - 1)[0] for gap in gaps]
    weighed = [sum(memory[: k + 1]) * gap for k, gap in zip(bins, gaps, strict=True)]
    return {"loss": Term([sum(weighed, batch.zero) / max(len(gaps), 1)], reduced=True)}


@define(
    "SelectivelyContrastiveTripletLoss",
    COSINE,
    "MeanReducer",
    more=({"hard_weight": 0.3, "temperature": 0.5},),
)
def selectively_contrastive_triplet(
    batch: Batch, hard_weight: float = 1.0, temperature: float = 0.1
) -> dict[str, Term]:
    """Xuan et al. 2020, equation 6, over all triplets; a tie, up to rounding, is not hard."""
    values = []
    for a, p, n in batch.triplets:
        near, far = batch.similarity(a, p), batch.similarity(a, n)
        if float((far - near).detach()) > 1e-14:
            values.append(hard_weight * far)
        else:
            values.append(torch.logaddexp(batch.zero, (far - near) / temperature))
    return {"loss": Term(values, batch.triplets)}
