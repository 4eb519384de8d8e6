"""Cross-batch memory: the references of a loss are the embeddings of recent batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from losslib.base import BaseLoss, PairLoss
from losslib.direct import DirectLoss
from losslib.errors import ShapeError
from losslib.inputs import Batch, Indices, read, read_indices
from losslib.miners.base import Miner
from losslib.pair_matrix import as_pairs, batch_masks
from losslib.params import Integer, Param
from losslib.precision import without_autocast, working
from losslib.terms import Term
from losslib.triplets import joined
from losslib.types import PairIndices, TripletIndices

__all__ = ["CrossBatchMemory"]

_SIZE = Integer(1)


class CrossBatchMemory(nn.Module):
    """Compares each batch with a memory of recent ones.

    Wang, Zhang, Huang, Scott 2020, "Cross-Batch Memory for Embedding Learning", section 3.3. The memory is a
    ring of `memory_size` rows. The references of a batch are the ring as it will stand once that batch is
    written, the oldest rows already replaced; the copy of an anchor in it is no pair with that anchor.
    Remembered rows are constants: only the anchors have a gradient. The memory changes when the loss has
    succeeded, and only then; its rows, position and fill are in the state dict.

    Args:
        loss: any loss that takes references; called with index tuples unless it works on the pair matrix.
        embedding_size: number of coordinates of an embedding, D.
        memory_size: number of rows that are remembered.
        miner: chooses pairs or triplets of the batch and the memory; None takes all.
    """

    embedding_memory: Tensor
    label_memory: Tensor

    def __init__(
        self,
        loss: nn.Module,
        embedding_size: int,
        memory_size: int = 1024,
        miner: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(loss, nn.Module):
            raise TypeError(f"CrossBatchMemory: loss must be a loss, got {loss!r}")
        if miner is not None and not callable(miner):
            raise TypeError(f"CrossBatchMemory: miner must be callable, got {miner!r}")
        self.loss, self.miner = loss, miner
        self.embedding_size = _checked("embedding_size", embedding_size)
        self.memory_size = _checked("memory_size", memory_size)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.register_buffer("embedding_memory", torch.zeros(self.memory_size, self.embedding_size))
        self.register_buffer("label_memory", torch.zeros(self.memory_size, dtype=torch.int64))
        self.position, self.fill = 0, 0

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        indices_tuple: Any = None,
        ref_emb: None = None,
        ref_labels: None = None,
    ) -> Any:
        """The loss of a batch against the memory; then the batch is remembered.

        Args:
            embeddings: (B, D), floating, B at most memory_size.
            labels: (B,), compared by equality.
            indices_tuple: further pairs or triplets within the batch, of its rows; they are added to those
                of the memory.
            ref_emb, ref_labels: refused; the references are the memory. (Other wrappers pass None.)

        Raises ShapeError for a batch that is too large or does not fit, ValueError for another dtype or
        device than the memory's. The memory is then as before.
        """
        _refuse_references(ref_emb, ref_labels)
        batch, rows, classes = self._against_memory(embeddings, labels)
        if self.miner is None and indices_tuple is None and _reads_masks(self.loss):
            value = _on_pair_matrix(self.loss, embeddings, batch)
        else:
            value = self.loss(*self._arguments(embeddings, batch, indices_tuple))
        self._remember(rows, classes, len(embeddings))
        return value

    def loss_terms(
        self,
        embeddings: Tensor,
        labels: Tensor,
        indices_tuple: Any = None,
        ref_emb: None = None,
        ref_labels: None = None,
    ) -> dict[str, Term]:
        """The unreduced terms by name; nothing is remembered."""
        loss: Any = self.loss
        _refuse_references(ref_emb, ref_labels)
        batch, _, _ = self._against_memory(embeddings, labels)
        terms: dict[str, Term] = loss.loss_terms(*self._arguments(embeddings, batch, indices_tuple))
        return terms

    def _against_memory(self, embeddings: Tensor, labels: Tensor) -> tuple[Batch, Tensor, Tensor]:
        """The batch with the memory as its reference, and the whole ring once this batch is written."""
        owner = "CrossBatchMemory"
        if labels is None:
            raise ShapeError(f"{owner}: labels must be a tensor of shape (B,), got None")
        batch = read(owner, embeddings, labels, None, None, None)
        assert batch.labels is not None
        count, size = batch.embeddings.shape
        if size != self.embedding_size:
            raise ShapeError(f"{owner}: embeddings must have {self.embedding_size} columns, got {size}")
        if count > self.memory_size:
            raise ShapeError(
                f"{owner}: a batch must have at most memory_size={self.memory_size} rows, got {count}"
            )
        new, classes = batch.embeddings.detach(), batch.labels
        rows, remembered = self._fitting(new, classes, batch.autocast)
        batch.own = (self.position + torch.arange(count, device=new.device)) % self.memory_size
        rows = rows.index_copy(0, batch.own, new.to(rows.dtype))
        remembered = remembered.index_copy(0, batch.own, classes.to(remembered.dtype))
        filled = min(self.fill + count, self.memory_size)
        batch.ref_emb, batch.ref_labels = rows[:filled].to(new.dtype), remembered[:filled]
        return batch, rows, remembered

    def _fitting(self, new: Tensor, labels: Tensor, autocast: bool) -> tuple[Tensor, Tensor]:
        """The memory's rows and labels in dtypes that the new ones fit. An empty memory takes any."""
        if self.fill == 0:
            return self.embedding_memory.to(new), self.label_memory.to(labels)
        rows, classes = working(self.embedding_memory), self.label_memory
        if rows.device != new.device or (rows.dtype != new.dtype and not autocast):
            raise ValueError(
                f"CrossBatchMemory: embeddings must be {rows.dtype} on {rows.device} as the memory is, got "
                f"{new.dtype} on {new.device}; move the memory with .to(device, dtype) or call reset()"
            )
        if classes.is_floating_point() != labels.is_floating_point():
            raise TypeError(
                f"CrossBatchMemory: labels must be of one kind with the memory's ({classes.dtype}), got "
                f"{labels.dtype}"
            )
        return rows, classes.to(labels.device, torch.promote_types(classes.dtype, labels.dtype))

    def _arguments(self, embeddings: Tensor, batch: Batch, given: Any) -> tuple[Any, ...]:
        """The arguments of the loss, with the pairs as index tuples."""
        assert batch.own is not None
        indices = self._mined(batch)
        if given is not None:
            count = len(embeddings)
            own = read_indices("CrossBatchMemory", given, count, count, batch.embeddings)
            indices = _joined(indices, _in_memory(own, batch.own))
        return embeddings, batch.labels, indices, batch.ref_emb, batch.ref_labels

    def _mined(self, batch: Batch) -> Indices:
        assert batch.own is not None
        if self.miner is None:
            positive, negative = batch_masks(batch)
            return PairIndices(*positive.nonzero(as_tuple=True), *negative.nonzero(as_tuple=True))
        arguments = (batch.embeddings.detach(), batch.labels, batch.ref_emb, batch.ref_labels)
        if isinstance(self.miner, Miner):
            return self.miner(*arguments, own=batch.own)
        mined, (anchors, references) = self.miner(*arguments), (len(batch.embeddings), len(batch.references))
        indices = read_indices("CrossBatchMemory: miner", mined, anchors, references, batch.embeddings)
        return _without_own(indices, batch.own)

    def _remember(self, rows: Tensor, labels: Tensor, count: int) -> None:
        self.embedding_memory, self.label_memory = rows, labels
        self.position = (self.position + count) % self.memory_size
        self.fill = min(self.fill + count, self.memory_size)

    def remembered(self) -> tuple[Tensor, Tensor, int, int]:
        """What it holds now, for `recall`. Nothing is copied: a later batch makes new tensors."""
        return self.embedding_memory, self.label_memory, self.position, self.fill

    def recall(self, state: tuple[Tensor, Tensor, int, int]) -> None:
        """Hold again what it held then, as if no batch had come since."""
        self.embedding_memory, self.label_memory, self.position, self.fill = state

    def get_extra_state(self) -> Tensor:
        """Position and fill, for the state dict."""
        return torch.tensor([self.position, self.fill])

    def set_extra_state(self, state: Tensor) -> None:
        """Take position and fill from a state dict."""
        self.position, self.fill = (int(number) for number in state)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        for name in ("embedding_memory", "label_memory"):  # keep every digit of what was saved
            saved, held = state_dict.get(prefix + name), getattr(self, name)
            if isinstance(saved, Tensor) and saved.shape == held.shape:
                setattr(self, name, held.to(saved.dtype, copy=True))
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """The options, for printing."""
        return f"embedding_size={self.embedding_size}, memory_size={self.memory_size}, fill={self.fill}"


def _refuse_references(ref_emb: Any, ref_labels: Any) -> None:
    if ref_emb is not None or ref_labels is not None:
        raise ValueError("CrossBatchMemory: takes no ref_emb, because its references are its memory")


def _checked(name: str, value: Any) -> int:
    size: int = Param(1, valid=_SIZE, name=name).check(value, "CrossBatchMemory")
    return size


def _reads_masks(loss: nn.Module) -> bool:
    """Whether the loss reads its pairs from masks alone, so that none need be written out."""
    if not isinstance(loss, PairLoss):
        return False
    cls = type(loss)
    return cls.compute is PairLoss.compute and cls.forward in (BaseLoss.forward, DirectLoss.forward)


def _on_pair_matrix(loss: Any, embeddings: Tensor, batch: Batch) -> Any:
    """The loss of a batch whose pairs are masks of its distance matrix."""
    with without_autocast(embeddings):
        return loss._of_batch(batch, embeddings, batch.labels)


def _in_memory(indices: Indices, own: Tensor) -> Indices:
    """Tuples of rows of the batch, their positives and negatives turned into places in the memory."""
    if isinstance(indices, TripletIndices):
        return TripletIndices(indices.anchors, own[indices.positives], own[indices.negatives])
    return PairIndices(
        indices.pos_anchors, own[indices.positives], indices.neg_anchors, own[indices.negatives]
    )


def _joined(first: Indices, second: Indices) -> Indices:
    """Both, one after the other, in the form of the first."""
    second = joined(second) if isinstance(first, TripletIndices) else as_pairs(second)
    return type(first)(*(torch.cat(both) for both in zip(first, second, strict=True)))


def _without_own(indices: Indices, own: Tensor) -> Indices:
    """The tuples whose positive, and whose negative, is not the anchor's own copy."""
    if isinstance(indices, TripletIndices):
        copies = own[indices.anchors]
        kept = (indices.positives != copies) & (indices.negatives != copies)
        return TripletIndices(*(index[kept] for index in indices))
    near = indices.positives != own[indices.pos_anchors]
    far = indices.negatives != own[indices.neg_anchors]
    return PairIndices(*(index[near] for index in indices[:2]), *(index[far] for index in indices[2:]))
