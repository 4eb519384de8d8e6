"""Which samples are similar: rules that give masks of positive and negative pairs, for any loss.

Each rule returns `PairMasks`. Pass them to a loss as its `indices_tuple`, or to a miner as its `labels`: no
pair is written out then, and memory stays that of the masks. `masks.indices()` writes them out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from losslib.errors import ParameterError, ShapeError
from losslib.types import PairIndices

Comparator = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class PairMasks:
    """Masks (B, R) of the positive and the negative pairs; a pair in neither takes no part."""

    positive: Tensor
    negative: Tensor

    def checked(self, owner: str, anchors: int, references: int, device: torch.device) -> PairMasks:
        """The masks on a device. Raises ShapeError or TypeError where they do not fit the embeddings."""
        for name, mask in (("positive", self.positive), ("negative", self.negative)):
            if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
                got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
                raise TypeError(f"{owner}: masks must be boolean tensors, got {name} of {got}")
            if tuple(mask.shape) != (anchors, references):
                raise ShapeError(
                    f"{owner}: masks must have shape ({anchors}, {references}), got {name} of "
                    f"{tuple(mask.shape)}"
                )
        return PairMasks(self.positive.to(device), self.negative.to(device))

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
    """Similar means the same label. labels (B,), ref_labels (R,); without them the batch itself.

    Raises ShapeError for labels of another shape.
    """
    for name, given in (("labels", labels), ("ref_labels", ref_labels)):
        if given is not None and given.ndim != 1:
            raise ShapeError(
                f"same_label: {name} must have shape (N,), one label a row, got {tuple(given.shape)}; "
                "for sets of labels see label_overlap"
            )
    return PairMasks(*label_masks(labels, labels if ref_labels is None else ref_labels, ref_labels is None))


def within_delta(targets: Tensor, delta: float, ref_targets: Tensor | None = None) -> PairMasks:
    """Similar means continuous labels at most `delta` apart (delta >= 0).

    targets: (B,) or (B, K), compared in every column; ref_targets likewise, without them the batch itself.
    """
    if not delta >= 0:
        raise ParameterError(f"within_delta: delta must be a number >= 0, got {delta!r}")
    others = targets if ref_targets is None else ref_targets
    if targets.ndim not in (1, 2) or targets.shape[1:] != others.shape[1:]:
        shapes = f"{tuple(targets.shape)} and {tuple(others.shape)}"
        raise ShapeError(f"within_delta: targets must be (B,) and (R,), or (B, K) and (R, K), got {shapes}")
    apart = (_signed(targets).unsqueeze(1) - _signed(others).unsqueeze(0)).abs()
    # whole numbers compare with a whole number: as floating ones they would be rounded
    positive = apart <= (delta if apart.is_floating_point() else min(int(min(delta, 2.0**62)), 2**62))
    if positive.ndim == 3:
        positive = positive.all(2)
    negative = positive.logical_not()
    if ref_targets is None:
        positive.fill_diagonal_(False)
        negative.fill_diagonal_(False)
    return PairMasks(positive, negative)


def _signed(targets: Tensor) -> Tensor:
    """Whole numbers and booleans as int64, where a difference neither wraps nor is undefined."""
    return targets if targets.is_floating_point() else targets.to(torch.int64)


def two_views(count: int, views: int = 2, device: torch.device | str | None = None) -> PairMasks:
    """Similar means views of one sample: `views` blocks of `count` rows, row i of each block one sample."""
    if count < 0 or views < 1:
        raise ParameterError(f"two_views: count must be >= 0 and views >= 1, got {count} and {views}")
    return same_label(torch.arange(count, device=device).repeat(views))


def semi_supervised(labels: Tensor, known: Tensor, sample: Tensor) -> PairMasks:
    """Similar means the same known label, or views of one sample.

    Args:
        labels: labels (B,); their values where `known` is False do not matter.
        known: mask (B,) of the rows whose label is known.
        sample: identity (B,) of the sample that each row is a view of.

    Two rows whose labels are both known are similar by label as well; all other pairs but the views of one
    sample are dissimilar, as in self-supervised training.
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


def by_matrix(similar: Tensor, dissimilar: Tensor | None = None, reference: bool = False) -> PairMasks:
    """Similar means what a matrix says.

    Args:
        similar: boolean (B, R), True where row i and reference j are similar.
        dissimilar: boolean (B, R), True where they are dissimilar; a pair in neither takes no part. None:
            every pair that is not similar.
        reference: False for a batch compared with itself, (B, B), whose diagonal takes no part; True for
            rows against a reference set.

    Raises TypeError for matrices that are not boolean, ShapeError for shapes that do not fit, ParameterError
    for a pair that is both.
    """
    given = [similar] if dissimilar is None else [similar, dissimilar]
    for matrix in given:
        if not isinstance(matrix, Tensor) or matrix.dtype != torch.bool:
            got = matrix.dtype if isinstance(matrix, Tensor) else type(matrix).__name__
            raise TypeError(f"by_matrix: similar and dissimilar must be boolean tensors, got {got}")
    shapes = [tuple(matrix.shape) for matrix in given]
    if similar.ndim != 2 or len(set(shapes)) > 1 or (not reference and shapes[0][0] != shapes[0][1]):
        wanted = "(B, R)" if reference else "(B, B); for a reference set give reference=True"
        raise ShapeError(
            f"by_matrix: matrices must have shape {wanted}, got {' and '.join(map(str, shapes))}"
        )
    positive = similar.clone()
    negative = similar.logical_not() if dissimilar is None else dissimilar.clone()
    if not reference:
        positive.fill_diagonal_(False)
        negative.fill_diagonal_(False)
    if dissimilar is not None and bool((positive & negative).any()):
        row, column = (int(i) for i in (positive & negative).nonzero()[0])
        raise ParameterError(f"by_matrix: a pair is similar or dissimilar, got both for ({row}, {column})")
    return PairMasks(positive, negative)


def by_comparator(
    labels: Tensor,
    compare: Comparator,
    ref_labels: Tensor | None = None,
    differ: Comparator | None = None,
) -> PairMasks:
    """Similar means what a function of two labels says, for example of label sets or hierarchies.

    Args:
        labels: (B, ...): one label a row, of any shape, such as (B, C) for a set of C classes.
        compare: called once on labels (B, 1, ...) and (1, R, ...), returns boolean (B, R), True for similar.
            For rows that share a class: `lambda a, b: (a & b).any(-1)`.
        ref_labels: (R, ...); without them the batch itself, where no sample pairs with itself.
        differ: likewise, True for dissimilar; None: every pair that is not similar.

    Raises TypeError or ShapeError for a function that returns something else.
    """
    others = labels if ref_labels is None else ref_labels
    found = [None if f is None else f(labels.unsqueeze(1), others.unsqueeze(0)) for f in (compare, differ)]
    wanted = (len(labels), len(others))
    for result in found:
        if isinstance(result, Tensor) and tuple(result.shape) != wanted:
            raise ShapeError(
                f"by_comparator: the function must return shape {wanted}, got {tuple(result.shape)}"
            )
    similar, dissimilar = found
    assert similar is not None
    return by_matrix(similar, dissimilar, reference=ref_labels is not None)


def label_overlap(labels: Tensor, least: float, ref_labels: Tensor | None = None) -> PairMasks:
    """Similar means label sets with a Jaccard overlap (common classes over all classes of both) of `least`.

    labels: boolean (B, C), True for each class of a row; ref_labels (R, C), without them the batch itself.
    Two empty sets are not similar. Raises ParameterError unless 0 < least <= 1.
    """
    if not 0 < least <= 1:
        raise ParameterError(f"label_overlap: least must be a number > 0 and <= 1, got {least!r}")
    others = labels if ref_labels is None else ref_labels
    if labels.ndim != 2 or others.ndim != 2 or labels.shape[1] != others.shape[1]:
        shapes = f"{tuple(labels.shape)} and {tuple(others.shape)}"
        raise ShapeError(f"label_overlap: labels must be (B, C) and (R, C), got {shapes}")
    if labels.dtype != torch.bool or others.dtype != torch.bool:
        raise TypeError(f"label_overlap: labels must be boolean, got {labels.dtype} and {others.dtype}")
    a, b = labels.double(), others.double()  # whole numbers: exact
    common = a @ b.t()
    union = a.sum(1, keepdim=True) + b.sum(1) - common
    similar = (common > 0) & (common / union.clamp_min(1) >= least)
    return by_matrix(similar, reference=ref_labels is not None)
