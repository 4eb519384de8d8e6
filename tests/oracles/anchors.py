"""Further losses over pairs and tuples: circle, tuplet margin, angular, NCA, N-pairs, lifted, variance."""

import math

import torch

from tests.oracles.core import COSINE, LP, Batch, Term, define, log_sum_exp
from tests.oracles.geometry import is_cosine, is_unit_euclidean
from tests.oracles.pair import contrastive

SQUARED = ("LpDistance", {"power": 2})
UNIT_DOT = ("DotProductSimilarity", {"normalize_embeddings": True})


def anchors(batch: Batch) -> range:
    return range(len(batch.embeddings))


@define("CircleLoss", COSINE, "AvgNonZeroReducer", similarity_only=True)
def circle(batch: Batch, margin: float = 0.4, gamma: float = 80.0) -> dict[str, Term]:
    """Sun et al. 2020, equation 6; the self-paced weights are constants. Anchors with both sides."""
    values, indices = [], []
    for a in anchors(batch):
        near = [batch.values[a, p] for p in batch.of(batch.positives, a, once=True)]
        far = [batch.values[a, n] for n in batch.of(batch.negatives, a, once=True)]
        if near and far:
            pull = [-gamma * torch.relu(1 + margin - s.detach()) * (s - (1 - margin)) for s in near]
            push = [gamma * torch.relu(s.detach() + margin) * (s - margin) for s in far]
            # log(1 + exp(x)) keeps values too small to change the 1: they are above 0 and count in the mean
            values.append(torch.logaddexp(batch.zero, log_sum_exp(pull) + log_sum_exp(push)))
            indices.append(a)
    return {"loss": Term(values, indices)}


@define("TupletMarginLoss", COSINE, "MeanReducer", only=is_cosine)
def tuplet_margin(batch: Batch, margin: float = 5.73, scale: float = 64.0) -> dict[str, Term]:
    """Yu and Tao 2019: cos(theta_ap - margin), written out so that no acos is needed; margin in degrees."""
    angle = math.radians(margin)
    values = []
    for a, p in batch.positives:
        s = batch.values[a, p]
        squared = 1 - s * s
        # at angle 0 the sine has no slope: 0, as for coincident points elsewhere
        sine = torch.sqrt(squared) if float(squared.detach()) > 1e-14 else batch.zero
        slackened = s * math.cos(angle) + sine * math.sin(angle)
        others = [scale * (batch.values[a, n] - slackened) for n in batch.of(batch.negatives, a)]
        values.append(torch.logaddexp(batch.zero, log_sum_exp(others)) if others else batch.zero)
    return {"loss": Term(values, batch.positives)}


@define("AngularLoss", LP, "MeanReducer", only=is_unit_euclidean)
def angular(batch: Batch, alpha: float = 40.0) -> dict[str, Term]:
    """Wang et al. 2017, equation 8 on normalised rows; alpha in degrees."""
    tangent = math.tan(math.radians(alpha)) ** 2

    def dot(value: torch.Tensor, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Dot product of the unit rows, from their distance by the law of cosines; a zero row is 0 long."""
        squares = float(bool(u.any())) + float(bool(v.any()))
        return value if batch.inverted else (squares - value**2) / 2

    def to_anchor(a: int, r: int) -> torch.Tensor:
        return dot(batch.values[a, r], batch.embeddings[a], batch.references[r])

    def to_positive(p: int, n: int) -> torch.Tensor:
        value = batch.between_references(p, n) if batch.has_reference else batch.values[p, n]
        return dot(value, batch.references[p], batch.references[n])

    values = []
    for a, p in batch.positives:
        pull = 2 * (1 + tangent) * to_anchor(a, p)
        push = [
            4 * tangent * (to_anchor(a, n) + to_positive(p, n)) - pull
            for n in batch.of(batch.negatives, a, once=True)
        ]
        values.append(torch.logaddexp(batch.zero, log_sum_exp(push)) if push else batch.zero)
    return {"loss": Term(values, batch.positives)}


@define("NCALoss", SQUARED, "MeanReducer")
def nca(batch: Batch, softmax_scale: float = 1.0) -> dict[str, Term]:
    """Goldberger et al. 2004: the probability of picking any positive; anchors that have one."""
    values, indices = [], []
    for a in anchors(batch):
        near = [softmax_scale * batch.similarity(a, p) for p in batch.of(batch.positives, a, once=True)]
        far = [softmax_scale * batch.similarity(a, n) for n in batch.of(batch.negatives, a, once=True)]
        if near:
            odds = log_sum_exp(far) - log_sum_exp(near) if far else None
            values.append(batch.zero if odds is None else torch.logaddexp(batch.zero, odds))
            indices.append(a)
    return {"loss": Term(values, indices)}


@define("NPairsLoss", UNIT_DOT, "MeanReducer")
def n_pairs(batch: Batch) -> dict[str, Term]:
    """Sohn 2016: one pair a class, its positive against the positives of the other classes."""
    first: dict[object, tuple[int, int]] = {}
    for a, p in batch.positives:
        first.setdefault(batch.labels[a] if batch.labels is not None else a, (a, p))
    chosen = list(first.values())
    values = []
    for a, p in chosen:
        values.append(log_sum_exp([batch.similarity(a, q) for _, q in chosen]) - batch.similarity(a, p))
    return {"loss": Term(values, [a for a, _ in chosen])}


@define("LiftedStructureLoss", LP, "MeanReducer")
def lifted_structure(batch: Batch, pos_margin: float = 0.0, neg_margin: float = 1.0) -> dict[str, Term]:
    """Oh Song et al. 2016, equation 4, in one batch: the negatives of both members of a positive pair."""
    values = []
    for a, p in batch.positives:
        push = [
            batch.gap(neg_margin, batch.values[b, n])
            for b, n in batch.negatives
            if b == a or (b == p and not batch.has_reference)
        ]
        if not push:  # the logarithm of an empty sum is minus infinity: the hinge is 0
            values.append(batch.zero)
            continue
        hinge = torch.relu(log_sum_exp(push) + batch.gap(batch.values[a, p], pos_margin))
        values.append(hinge**2 / 2)
    return {"loss": Term(values, batch.positives)}


@define("GeneralizedLiftedStructureLoss", LP, "MeanReducer")
def generalized_lifted_structure(
    batch: Batch, pos_margin: float = 0.0, neg_margin: float = 1.0
) -> dict[str, Term]:
    """Hermans et al. 2017, page 4; per anchor that has a pair."""
    values, indices = [], []
    for a in anchors(batch):
        near = [batch.gap(batch.values[a, p], pos_margin) for p in batch.of(batch.positives, a, once=True)]
        far = [batch.gap(neg_margin, batch.values[a, n]) for n in batch.of(batch.negatives, a, once=True)]
        if near or far:
            both = (log_sum_exp(near) if near else batch.zero) + (log_sum_exp(far) if far else batch.zero)
            values.append(torch.relu(both))
            indices.append(a)
    return {"loss": Term(values, indices)}


@define(
    "SignalToNoiseRatioContrastiveLoss",
    ("SNRDistance", {}),
    "AvgNonZeroReducer",
    only=lambda spec: spec[0] == "SNRDistance",
)
def signal_to_noise_ratio(batch: Batch, pos_margin: float = 0.0, neg_margin: float = 1.0) -> dict[str, Term]:
    """Yuan et al. 2019: contrastive on the noise-to-signal ratio."""
    return contrastive(batch, pos_margin, neg_margin)


@define("IntraPairVarianceLoss", COSINE, "MeanReducer")
def intra_pair_variance(batch: Batch, pos_eps: float = 0.01, neg_eps: float = 0.01) -> dict[str, Term]:
    """Yu and Tao 2019: squared excess of each pair over its kind's mean, on its harder side."""
    near = [batch.values[a, p] for a, p in batch.positives]
    far = [batch.values[a, n] for a, n in batch.negatives]

    def excess(values: list[torch.Tensor], eps: float, below: bool) -> list[torch.Tensor]:
        mean = sum(values) / max(len(values), 1)
        gaps = [(1 - eps) * mean - v if below else v - (1 + eps) * mean for v in values]
        return [torch.relu(gap) ** 2 for gap in gaps]

    return {
        "pos_loss": Term(excess(near, pos_eps, batch.inverted), batch.positives),
        "neg_loss": Term(excess(far, neg_eps, not batch.inverted), batch.negatives),
    }
