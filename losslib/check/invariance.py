"""What must not change the value: batch order, names of the classes, rotation, length of the rows."""

from __future__ import annotations

import torch

from losslib.check.registry import Finding, NotApplicable, check
from losslib.check.subject import Subject, relative_error

TOLERANCE = 1e-9


def _repeatable(subject: Subject) -> None:
    if subject.samples:
        raise NotApplicable("the loss draws its triplets at random")


@check(
    "batch order", "a loss that depends on the order of its rows learns from the sampler, not from the labels"
)
def batch_order(subject: Subject) -> Finding:
    """Value unchanged and gradient moved along when the rows are permuted."""
    _repeatable(subject)
    embeddings, labels = subject.batch(seed=10)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(subject.seed + 1))
    value, gradient = subject.gradient(embeddings, labels)
    moved, moved_gradient = subject.gradient(embeddings[order], labels[order])
    error = max(relative_error(moved, value), relative_error(moved_gradient, gradient[order]))
    tried = f"{len(labels)} rows in another order"
    return Finding(error < TOLERANCE, tried, f"relative change {error:.1e}", "none in value and gradient")


@check("label names", "classes are names: calling class 2 class 70 must change nothing")
def label_names(subject: Subject) -> Finding:
    """Value unchanged when the labels are renamed, negative and huge ones among them."""
    _repeatable(subject)
    subject.needs_labels()
    if subject.class_indexed or subject.has_proxies:
        raise NotApplicable("the loss has a parameter per class, so its labels are indices")
    embeddings, labels = subject.batch(seed=11)
    names = torch.arange(subject.num_classes).flip(0) * 1_000_003 - 7
    names[-1] = 2**53 + 1
    names[0] = 2**53  # equal to the last one once both are floats
    value, gradient = subject.gradient(embeddings, labels)
    renamed, renamed_gradient = subject.gradient(embeddings, names[labels])
    error = max(relative_error(renamed, value), relative_error(renamed_gradient, gradient))
    tried = f"classes 0 to {subject.num_classes - 1} renamed {', '.join(map(str, names.tolist()))}"
    return Finding(error < TOLERANCE, tried, f"relative change {error:.1e}", "none in value and gradient")


def _distance_is(subject: Subject, rotation: bool) -> bool | None:
    """Whether the loss's distance ignores a rotation (or the rows' lengths); None when it has none."""
    distance = subject.declares("distance")
    kind = type(distance).__name__
    if kind == "SNRDistance" or subject.has_proxies:
        return False
    if rotation:
        if kind == "LpDistance":
            return float(distance.p) == 2.0
        return True if kind in ("CosineSimilarity", "DotProductSimilarity") else None
    normalises = getattr(distance, "normalize_embeddings", None)
    return None if normalises is None else bool(normalises)


def _invariance(subject: Subject, tried: str, change: torch.Tensor, rotation: bool) -> Finding:
    """Value before and after multiplying the batch by `change` from the right or row by row."""
    _repeatable(subject)
    if subject.two_views:
        raise NotApplicable("the second view tried here is made along the axes of the first")
    claimed = _distance_is(subject, rotation)
    if claimed is False:
        raise NotApplicable("its distance or its parameters distinguish the two")
    embeddings, labels = subject.batch(seed=12)
    changed = embeddings @ change if rotation else embeddings * change
    value = subject.value(embeddings, labels)
    error = relative_error(subject.value(changed, labels), value)
    if claimed is None and error >= TOLERANCE:
        raise NotApplicable(f"it changes by {error:.1e}, and nothing says that it should not")
    return Finding(error < TOLERANCE, tried, f"relative change {error:.1e}", "none")


@check("rotation", "no axis of the embedding space means anything to a loss of distances or angles")
def rotation(subject: Subject) -> Finding:
    """Value unchanged when all rows are rotated together."""
    turn, _ = torch.linalg.qr(subject.rows(subject.embedding_size, seed=13))
    return _invariance(subject, "all rows rotated together", turn, rotation=True)


@check(
    "scale",
    "a normalising loss that still depends on the rows' lengths can be lowered without learning anything",
)
def scale(subject: Subject) -> Finding:
    """Value unchanged when every row is multiplied by a positive number of its own."""
    factors = torch.linspace(-2, 2, len(subject.labels()), dtype=torch.float64)[:, None].exp()
    return _invariance(
        subject, "every row multiplied by a positive number of its own", factors, rotation=False
    )
