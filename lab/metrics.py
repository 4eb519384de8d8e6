"""Quality and collapse of the probe's embeddings; clustering scores (NMI, AMI) with scikit-learn."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from lab.retrieval import map_at_r, map_at_r_within, recall_at_1, recall_at_1_within
from losslib import evaluation

# The potential is a mean over all pairs; a thousand points give it to three digits in a quarter of the time.
UNIFORMITY_POINTS = 1000


def quality(embeddings: Tensor, labels: Tensor, with_map: bool) -> dict[str, float | None]:
    """Retrieval by Euclidean distance, alignment and uniformity.

    Args:
        embeddings: (N, D), normalised beforehand where the loss measures them so.
        labels: (N,).
        with_map: whether to compute MAP@R, the one that takes long; None otherwise.
    """
    return {
        "recall_at_1": recall_at_1(embeddings, labels),
        "map_at_r": map_at_r(embeddings, labels) if with_map else None,
        "alignment": evaluation.alignment(embeddings, labels).item(),
        "uniformity": evaluation.uniformity(embeddings[:UNIFORMITY_POINTS]).item(),
    }


def quality_within(
    embeddings: Tensor, values: Tensor, delta: float, with_map: bool
) -> dict[str, float | None]:
    """As `quality`, where positives are points whose values (N,) are at most `delta` apart; no alignment."""
    return {
        "recall_at_1": recall_at_1_within(embeddings, values, delta),
        "map_at_r": map_at_r_within(embeddings, values, delta) if with_map else None,
        "alignment": None,
        "uniformity": evaluation.uniformity(embeddings[:UNIFORMITY_POINTS]).item(),
    }


def alignment_of_pairs(embeddings: Tensor, anchors: Tensor, others: Tensor) -> float:
    """Mean squared distance of these positive pairs of normalised embeddings; NaN without any."""
    unit = normalize(embeddings, dim=1)
    return (unit[anchors] - unit[others]).square().sum(1).mean().item()


def collapse(embeddings: Tensor) -> dict[str, float]:
    """Spread per dimension, effective rank and mean cosine."""
    measures = evaluation.collapse(embeddings)
    return {name: value.item() for name, value in measures._asdict().items()}


def as_measured(embeddings: Tensor, loss: torch.nn.Module) -> Tensor:
    """The embeddings as the loss's distance sees them: at length 1 where it normalises."""
    distance = getattr(loss, "distance", None)
    return normalize(embeddings, dim=1) if getattr(distance, "normalize_embeddings", True) else embeddings


def clustering(embeddings: Tensor, labels: Tensor, seed: int = 0) -> dict[str, float]:
    """Normalised and adjusted mutual information of k-means clusters with the labels, k = number of labels.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
        seed: of k-means' first centres.

    Returns:
        nmi from 0 to 1, and ami, which is 0 on average for random clusters.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    points, truth = embeddings.detach().cpu().double().numpy(), labels.cpu().numpy()
    clusters = len(labels.unique())
    found = KMeans(n_clusters=clusters, n_init=4, random_state=seed).fit_predict(points)
    return {
        "nmi": float(normalized_mutual_info_score(truth, found)),
        "ami": float(adjusted_mutual_info_score(truth, found)),
    }
