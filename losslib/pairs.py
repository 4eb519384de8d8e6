"""Which samples are similar: rules that give masks of positive and negative pairs, for any loss.

Each rule returns `PairMasks`; pass `masks.indices()` to a loss as its `indices_tuple`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from losslib.errors import ParameterError, ShapeError
from losslib.types import PairIndices


@dataclass(frozen=True)
class PairMasks:
    """Masks (B, R) of the positive and the negative pairs; a pair in neither takes no part."""

    positive: Tensor
    negative: Tensor

    def indices(self) -> PairIndices:
        """The pairs as index tensors, for `indices_tuple`."""
        return PairIndices(*self.positive.nonzero(as_tuple=True), *self.negative.nonzero(as_tuple=True))


def label_masks(labels: Tensor | None, ref_labels: Tensor | None, same_set: bool) -> tuple[Tensor, Tensor]:
    """Masks (B, R) of equal and of different labels; in the same set no sample pairs with itself."""
    if labels is None or ref_labels is None:
        raise ShapeError("labels are needed to tell positive pairs from negative ones, got None")
    positive = labels.unsqueeze(1) == ref_labels.unsqueeze(0)
    negative = positive.logical_not()
    if same_set:
        positive.fill_diagonal_(False)
        if labels.is_floating_point():
            negative.fill_diagonal_(False)  # NaN differs from itself
    return positive, negative


def pair_counts(labels: Tensor) -> tuple[Tensor, Tensor]:
    """Number of positives and of negatives of each row of a batch, both (B,) in double precision."""
    positive, negative = label_masks(labels, labels, same_set=True)
    return positive.sum(1).double(), negative.sum(1).double()


def same_label(labels: Tensor, ref_labels: Tensor | None = None) -> PairMasks:
    """Similar means the same label. labels (B,), ref_labels (R,); without them the batch itself."""
    return PairMasks(*label_masks(labels, labels if ref_labels is None else ref_labels, ref_labels is None))


def within_delta(targets: Tensor, delta: float, ref_targets: Tensor | None = None) -> PairMasks:
    """Similar means continuous labels at most `delta` apart (delta >= 0).

    targets: (B,) or (B, K), compared in every column; ref_targets likewise, without them the batch itself.
    """
    if not delta >= 0:
        raise ParameterError(f"within_delta: delta must be a number >= 0, got {delta!r}")
    others = targets if ref_targets is None else ref_targets
    apart = (targets.unsqueeze(1) - others.unsqueeze(0)).abs()
    positive = apart <= delta
    if positive.ndim == 3:
        positive = positive.all(2)
    negative = positive.logical_not()
    if ref_targets is None:
        positive.fill_diagonal_(False)
        negative.fill_diagonal_(False)
    return PairMasks(positive, negative)


def two_views(count: int, views: int = 2, device: torch.device | str | None = None) -> PairMasks:
    """Similar means views of one sample: `views` blocks of `count` rows, row i of each block one sample."""
    if count < 0 or views < 1:
        raise ParameterError(f"two_views: count must be >= 0 and views >= 1, got {count} and {views}")
    return same_label(torch.arange(count, device=device).repeat(views))


def semi_supervised(labels: Tensor, known: Tensor, sample: Tensor) -> PairMasks:
    """Similar means the same known label, or views of one sample where a label is unknown.

    Args:
        labels: labels (B,); their values where `known` is False do not matter.
        known: mask (B,) of the rows whose label is known.
        sample: identity (B,) of the sample that each row is a view of.

    Two rows whose labels are both known compare by label. Otherwise views of one sample are similar and all
    other pairs are dissimilar, as in self-supervised training.
    """
    if not labels.shape == known.shape == sample.shape or labels.ndim != 1:
        shapes = ", ".join(str(tuple(t.shape)) for t in (labels, known, sample))
        raise ShapeError(f"semi_supervised: labels, known and sample must all have shape (B,), got {shapes}")
    both_known = known.unsqueeze(1) & known.unsqueeze(0)
    same = labels.unsqueeze(1) == labels.unsqueeze(0)
    views = sample.unsqueeze(1) == sample.unsqueeze(0)
    positive = torch.where(both_known, same | views, views)
    negative = positive.logical_not()
    positive.fill_diagonal_(False)
    return PairMasks(positive, negative)
