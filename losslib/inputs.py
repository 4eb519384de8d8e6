"""Reading a loss's inputs: checks with one-line messages, devices, working precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslib.errors import ShapeError
from losslib.pairs import PairMasks
from losslib.precision import autocasting, values_are_known, working
from losslib.types import PairIndices, TripletIndices

Indices = PairIndices | TripletIndices


@dataclass
class Batch:
    """Checked inputs in working precision. `ref_emb` is None when the batch is compared with itself."""

    embeddings: Tensor  # (B, D)
    labels: Tensor | None  # (B,)
    indices: Indices | None
    ref_emb: Tensor | None  # (R, D)
    ref_labels: Tensor | None  # (R,)
    given_dtype: torch.dtype  # of the embeddings as they came
    autocast: bool  # whether the loss was called under autocast
    own: Tensor | None = None  # (B,) the reference row that is a copy of each anchor, and no pair with it
    masks: PairMasks | None = None  # the pairs as masks (B, R), where they were given so
    among_itself: bool = False  # whether the references are the batch that these anchors are a part of

    @property
    def itself(self) -> Tensor | None:
        """Mask (B, R) of each anchor's own place among the references, None where they are a set apart."""
        count, device = len(self.embeddings), self.embeddings.device
        if self.ref_emb is None:
            return torch.eye(count, dtype=torch.bool, device=device)
        if not self.among_itself or self.own is None:
            return None
        mask = torch.zeros(count, len(self.ref_emb), dtype=torch.bool, device=device)
        return mask.scatter_(1, self.own.unsqueeze(1), value=True)

    @property
    def references(self) -> Tensor:
        """The embeddings that positives and negatives come from, (R, D)."""
        return self.embeddings if self.ref_emb is None else self.ref_emb

    @property
    def reference_labels(self) -> Tensor | None:
        """The labels of the references, (R,)."""
        return self.labels if self.ref_emb is None else self.ref_labels


def read(
    owner: str,
    embeddings: Tensor,
    labels: Tensor | None,
    indices_tuple: Any,
    ref_emb: Tensor | None,
    ref_labels: Tensor | None,
    dense: bool = False,
) -> Batch:
    """Check the arguments of a loss and bring them to one device and precision.

    Pairs given as masks stay masks where the loss reads them so (`dense`), else they become index tensors.

    Raises ShapeError for shapes, sizes and missing arguments, TypeError for wrong types.
    """
    x = _embeddings(owner, "embeddings", embeddings)
    y = None if ref_emb is None else _references(owner, x, ref_emb, autocasting(embeddings))
    if y is None and ref_labels is not None:
        raise ShapeError(f"{owner}: ref_labels must come with ref_emb, got ref_labels alone")
    if labels is None and indices_tuple is None:
        raise ShapeError(f"{owner}: give labels or indices_tuple, got neither")
    if y is not None and ref_labels is None and indices_tuple is None:
        raise ShapeError(f"{owner}: ref_emb with labels needs ref_labels, got None")
    labels = None if labels is None else read_labels(owner, "labels", labels, x)
    if y is not None and ref_labels is not None:
        ref_labels = read_labels(owner, "ref_labels", ref_labels, y)
        if labels is not None and labels.is_floating_point() != ref_labels.is_floating_point():
            raise TypeError(
                f"{owner}: labels and ref_labels must both be whole numbers or both floating, "
                f"got {labels.dtype} and {ref_labels.dtype}"
            )
    indices = masks = None
    if indices_tuple is not None:
        references = len(x) if y is None else len(y)
        if isinstance(indices_tuple, PairMasks) and dense:
            masks = indices_tuple.checked(owner, len(x), references, x.device)
        else:
            indices = read_indices(owner, indices_tuple, len(x), references, x)
    return Batch(x, labels, indices, y, ref_labels, embeddings.dtype, autocasting(embeddings), masks=masks)


def read_rows(owner: str, embeddings: Tensor) -> Batch:
    """Check embeddings that come alone and bring them to working precision. Raises as `read`."""
    x = _embeddings(owner, "embeddings", embeddings)
    return Batch(x, None, None, None, None, embeddings.dtype, autocasting(embeddings))


def read_views(owner: str, embeddings: Tensor, ref_emb: Tensor | None) -> Batch:
    """Check two views of the same samples, row i of one and row i of the other. Raises as `read`."""
    batch = read_rows(owner, embeddings)
    x = batch.embeddings
    if ref_emb is None:
        raise ShapeError(f"{owner}: ref_emb must be the second view of the same samples, got None")
    batch.ref_emb = _references(owner, x, ref_emb, batch.autocast)
    if len(batch.ref_emb) != len(x):
        raise ShapeError(f"{owner}: ref_emb must have {len(x)} rows as embeddings have, got {len(ref_emb)}")
    return batch


def _embeddings(owner: str, name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{owner}: {name} must be a tensor, got {type(x).__name__}")
    if x.ndim != 2 or x.shape[1] == 0:
        raise ShapeError(f"{owner}: {name} must have shape (N, D) with D >= 1, got {tuple(x.shape)}")
    if not x.is_floating_point():
        raise TypeError(f"{owner}: {name} must be floating, got {x.dtype}")
    return working(x)


def _references(owner: str, x: Tensor, ref_emb: Any, autocast: bool) -> Tensor:
    y = _embeddings(owner, "ref_emb", ref_emb)
    if y.shape[1] != x.shape[1]:
        raise ShapeError(
            f"{owner}: ref_emb must have {x.shape[1]} columns as embeddings have, got {y.shape[1]}"
        )
    if y.device != x.device:
        raise ShapeError(f"{owner}: ref_emb must be on {x.device} as embeddings are, got {y.device}")
    if y.dtype != x.dtype:
        if not autocast:
            raise ShapeError(f"{owner}: ref_emb must be {x.dtype} as embeddings are, got {y.dtype}")
        y = y.to(x.dtype)
    return y


def read_labels(owner: str, name: str, labels: Any, x: Tensor) -> Tensor:
    """Labels (N,) on the embeddings' device, in a dtype that compares exactly."""
    if not isinstance(labels, Tensor):
        raise TypeError(f"{owner}: {name} must be a tensor of shape ({len(x)},), got {type(labels).__name__}")
    if labels.ndim != 1 or labels.shape[0] != x.shape[0]:
        raise ShapeError(
            f"{owner}: {name} must have shape ({len(x)},), one label a row, got {tuple(labels.shape)}"
        )
    if labels.is_complex():
        raise TypeError(f"{owner}: {name} must be whole numbers, booleans or floating, got {labels.dtype}")
    if labels.dtype == torch.uint64:
        labels = labels.view(torch.int64)  # same bits are equal, and torch compares int64 everywhere
    elif labels.dtype in (torch.uint16, torch.uint32):
        labels = labels.to(torch.int64)
    return labels if labels.device == x.device else labels.to(x.device)


def read_indices(owner: str, given: Any, anchors: int, references: int, x: Tensor) -> Indices:
    """An index tuple as PairIndices or TripletIndices of int64 tensors on the embeddings' device."""
    if isinstance(given, PairMasks):
        return given.checked(owner, anchors, references, x.device).indices()
    if not isinstance(given, (tuple, list)) or len(given) not in (3, 4):
        got = f"{len(given)} entries" if isinstance(given, (tuple, list)) else type(given).__name__
        raise ShapeError(
            f"{owner}: indices_tuple must be (anchors, positives, negatives) or "
            f"(pos_anchors, positives, neg_anchors, negatives), got {got}"
        )
    kind: type[Indices] = TripletIndices if len(given) == 3 else PairIndices
    for name, index in zip(kind._fields, given, strict=True):
        if not isinstance(index, Tensor) or index.dtype not in (torch.int32, torch.int64):
            dtype = index.dtype if isinstance(index, Tensor) else type(index).__name__
            raise TypeError(f"{owner}: indices_tuple {name} must be int64 or int32 tensors, got {dtype}")
        if index.ndim != 1:
            raise ShapeError(
                f"{owner}: indices_tuple {name} must be one-dimensional, got {tuple(index.shape)}"
            )
    groups = [given] if kind is TripletIndices else [given[:2], given[2:]]
    for group in groups:
        if len({len(index) for index in group}) > 1:
            sizes = [len(index) for index in given]
            raise ShapeError(f"{owner}: indices_tuple must have paired tensors of equal length, got {sizes}")
    for name, index in zip(kind._fields, given, strict=True):
        _check_range(owner, name, index, anchors if "anchors" in name else references)
    moved = [index.to(x.device, torch.int64) for index in given]
    return kind(*moved)


def _check_range(owner: str, name: str, index: Tensor, size: int) -> None:
    if index.numel() == 0 or not values_are_known(index):
        return
    low, high = (int(end) for end in torch.aminmax(index))
    if low < 0 or high >= size:
        raise ShapeError(
            f"{owner}: indices_tuple {name} must lie in 0..{size - 1}, got values from {low} to {high}"
        )
