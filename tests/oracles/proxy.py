"""Losses against learned rows of each class: `weight` has shape (C, D), or (C * k, D) with k centres."""

import math

import torch
from torch import Tensor

from tests.oracles.anchors import SQUARED, UNIT_DOT, anchors
from tests.oracles.core import COSINE, Batch, Term, define, log_sum_exp
from tests.oracles.geometry import between, cosine


def to_rows(batch: Batch, weight: Tensor) -> list[list[Tensor]]:
    """Distance or similarity of each embedding to each row of the weight."""
    return [[between(batch.spec, x, w) for w in weight.double()] for x in batch.embeddings]


def similarities(batch: Batch, weight: Tensor) -> list[list[Tensor]]:
    sign = 1 if batch.inverted else -1
    return [[sign * v for v in row] for row in to_rows(batch, weight)]


def cross_entropy(batch: Batch, logits: list[list[Tensor]]) -> dict[str, Term]:
    values = [log_sum_exp(row) - row[y] for row, y in zip(logits, batch.labels, strict=True)]
    return {"loss": Term(values, list(anchors(batch)))}


@define("ProxyNCALoss", SQUARED, "MeanReducer")
def proxy_nca(batch: Batch, weight: Tensor, softmax_scale: float = 1.0) -> dict[str, Term]:
    return cross_entropy(batch, [[softmax_scale * s for s in row] for row in similarities(batch, weight)])


@define("ProxyAnchorLoss", COSINE, "DivisorReducer")
def proxy_anchor(batch: Batch, weight: Tensor, margin: float = 0.1, alpha: float = 32.0) -> dict[str, Term]:
    """Kim et al. 2020, equation 4."""
    values = to_rows(batch, weight)
    near, far = [], []
    for c in range(len(weight)):
        pull = [alpha * batch.gap(values[i][c], margin) for i in anchors(batch) if batch.labels[i] == c]
        push = [alpha * batch.gap(-margin, values[i][c]) for i in anchors(batch) if batch.labels[i] != c]
        near.append(log_sum_exp([batch.zero, *pull]))
        far.append(log_sum_exp([batch.zero, *push]))
    classes = list(range(len(weight)))
    return {
        "pos_loss": Term(near, classes, divisor=len(set(batch.labels))),
        "neg_loss": Term(far, classes, divisor=len(weight)),
    }


@define("NormalizedSoftmaxLoss", UNIT_DOT, "MeanReducer")
def normalized_softmax(batch: Batch, weight: Tensor, temperature: float = 0.05) -> dict[str, Term]:
    return cross_entropy(batch, [[s / temperature for s in row] for row in similarities(batch, weight)])


def margined(batch: Batch, weight: Tensor, change: object) -> list[list[Tensor]]:
    """Cosines, the true class's changed by `change(cosine)`."""
    found = []
    for row, y in zip(to_rows(batch, weight), batch.labels, strict=True):
        found.append([change(s) if c == y else s for c, s in enumerate(row)])
    return found


@define("CosFaceLoss", COSINE, "MeanReducer", similarity_only=True)
def cos_face(batch: Batch, weight: Tensor, margin: float = 0.35, scale: float = 64.0) -> dict[str, Term]:
    rows = margined(batch, weight, lambda s: s - margin)
    return cross_entropy(batch, [[scale * s for s in row] for row in rows])


def widened(s: Tensor, margin: float) -> Tensor:
    """cos(theta + margin), continued downwards where theta + margin would pass 180 degrees."""
    if float(s.detach()) >= math.cos(math.pi - margin):
        return s * math.cos(margin) - torch.sqrt(1 - s * s) * math.sin(margin)
    return s - margin * math.sin(margin)


@define("ArcFaceLoss", COSINE, "MeanReducer", similarity_only=True)
def arc_face(batch: Batch, weight: Tensor, margin: float = 0.5, scale: float = 64.0) -> dict[str, Term]:
    """Deng et al. 2019, equation 3; margin in radians."""
    rows = margined(batch, weight, lambda s: widened(s, margin))
    return cross_entropy(batch, [[scale * s for s in row] for row in rows])


@define("SubCenterArcFaceLoss", COSINE, "MeanReducer", similarity_only=True)
def sub_center_arc_face(
    batch: Batch, weight: Tensor, margin: float = 0.5, scale: float = 64.0, sub_centers: int = 3
) -> dict[str, Term]:
    """Deng et al. 2020: the nearest of each class's centres stands for the class."""
    logits = []
    for row, y in zip(to_rows(batch, weight), batch.labels, strict=True):
        groups = [row[k : k + sub_centers] for k in range(0, len(row), sub_centers)]
        best = [max(group, key=lambda s: float(s.detach())) for group in groups]
        logits.append([scale * (widened(s, margin) if c == y else s) for c, s in enumerate(best)])
    return cross_entropy(batch, logits)


@define("DynamicArcFaceLoss", COSINE, "MeanReducer", similarity_only=True)
def dynamic_arc_face(
    batch: Batch,
    weight: Tensor,
    class_counts: tuple[int, ...],
    lambda0: float = 0.25,
    a: float = 0.5,
    b: float = 0.05,
    scale: float = 64.0,
    sub_centers: int = 1,
) -> dict[str, Term]:
    """Ha et al. 2020, section 2.1: the margin of class c is a * n_c ** -lambda + b."""
    logits = []
    for row, y in zip(to_rows(batch, weight), batch.labels, strict=True):
        groups = [row[k : k + sub_centers] for k in range(0, len(row), sub_centers)]
        best = [max(group, key=lambda s: float(s.detach())) for group in groups]
        margin = a / class_counts[y] ** lambda0 + b
        logits.append([scale * (widened(s, margin) if c == y else s) for c, s in enumerate(best)])
    return cross_entropy(batch, logits)


@define("CenterLoss", ("LpDistance", {"normalize_embeddings": False, "power": 2}), "MeanReducer")
def center(batch: Batch, weight: Tensor) -> dict[str, Term]:
    """Wen et al. 2016, equation 2, averaged over the rows."""
    values = [
        between(batch.spec, x, weight[y].double()) / 2
        for x, y in zip(batch.embeddings, batch.labels, strict=True)
    ]
    return {"loss": Term(values, list(anchors(batch)))}


def multiplied_angle(s: Tensor, margin: int) -> Tensor:
    """(-1)^k cos(margin * theta) - 2 k, k = floor(margin * theta / pi): falls all the way."""
    k = math.floor(math.acos(max(-1.0, min(1.0, float(s.detach())))) * margin / math.pi)
    before, current = torch.ones_like(s), s  # Chebyshev: cos((n + 1) t) = 2 cos t cos(n t) - cos((n - 1) t)
    for _ in range(margin - 1):
        before, current = current, 2 * s * current - before
    return (-1) ** k * (current if margin > 0 else before) - 2 * k


@define("LargeMarginSoftmaxLoss", COSINE, "MeanReducer", similarity_only=True)
def large_margin_softmax(
    batch: Batch, weight: Tensor, margin: int = 4, scale: float = 1.0
) -> dict[str, Term]:
    """Liu et al. 2016, equation 6: the logits keep both norms."""
    rows = margined(batch, weight, lambda s: multiplied_angle(s, margin))
    logits = [
        [scale * s * x.norm() * w.norm() for s, w in zip(row, weight.double(), strict=True)]
        for row, x in zip(rows, batch.embeddings, strict=True)
    ]
    return cross_entropy(batch, logits)


@define("SphereFaceLoss", COSINE, "MeanReducer", similarity_only=True)
def sphere_face(batch: Batch, weight: Tensor, margin: int = 4, scale: float = 1.0) -> dict[str, Term]:
    """Liu et al. 2017: as above with the weight's rows normalised."""
    rows = margined(batch, weight, lambda s: multiplied_angle(s, margin))
    logits = [[scale * s * x.norm() for s in row] for row, x in zip(rows, batch.embeddings, strict=True)]
    return cross_entropy(batch, logits)


@define("SoftTripleLoss", COSINE, "MeanReducer", similarity_only=True)
def soft_triple(
    batch: Batch,
    weight: Tensor,
    centers_per_class: int = 10,
    la: float = 20.0,
    gamma: float = 0.1,
    margin: float = 0.01,
) -> dict[str, Term]:
    """Qian et al. 2019, equations 7 and 8; gamma divides the similarities inside a class."""
    logits = []
    for row, y in zip(to_rows(batch, weight), batch.labels, strict=True):
        relaxed = []
        for k in range(0, len(row), centers_per_class):
            group = row[k : k + centers_per_class]
            total = log_sum_exp([s / gamma for s in group])
            relaxed.append(sum(torch.exp(s / gamma - total) * s for s in group))
        logits.append([la * (s - margin if c == y else s) for c, s in enumerate(relaxed)])
    return cross_entropy(batch, logits)


@define("P2SGradLoss", COSINE, None, similarity_only=True)
def p2s_grad(batch: Batch, weight: Tensor) -> dict[str, Term]:
    """Zhang et al. 2019: mean squared difference of the cosines from the one-hot target."""
    gaps = [
        (cosine(x, w) - (1.0 if c == y else 0.0)) ** 2
        for x, y in zip(batch.embeddings, batch.labels, strict=True)
        for c, w in enumerate(weight.double())
    ]
    return {"loss": Term([sum(gaps) / max(len(gaps), 1)], reduced=True)}
