"""Losses over the batches of all processes of a torch.distributed group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from losslib.base import BaseLoss, PairLoss
from losslib.direct import DirectLoss
from losslib.inputs import Batch
from losslib.pair_matrix import as_pairs
from losslib.pairs import PairMasks
from losslib.precision import without_autocast
from losslib.shares import Ledger, share_of
from losslib.types import PairIndices, TripletIndices

__all__ = ["DistributedLossWrapper"]


class DistributedLossWrapper(nn.Module):
    """One loss over the batches of all processes: anchors are this process's rows, references everybody's.

    Every process gets the loss of the whole batch. Its gradient is scaled by the number of processes, so
    that after the mean that DistributedDataParallel takes every parameter's gradient equals that of one
    process on the whole batch. Batches may differ in size, and a process may have no pairs at all. A loss
    that does not split by anchor is computed on the whole batch by every process.

    Without a process group, or in one of a single process, it is the loss itself.

    Args:
        loss: any loss called on embeddings and labels, the same in every process. If it has parameters of
            its own, put it into DistributedDataParallel with the model.
        group: the process group, None for the default one (gloo or nccl).

    All processes must call it together, with rows of one size and dtype and labels of one dtype.
    """

    def __init__(self, loss: nn.Module, group: Any = None) -> None:
        super().__init__()
        if not isinstance(loss, nn.Module):
            raise TypeError(f"DistributedLossWrapper: loss must be a loss, got {loss!r}")
        self.loss, self.group = loss, group

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Any:
        """The loss of the whole batch, 0-d.

        Args:
            embeddings: (B, D), this process's rows.
            labels: (B,).
            indices_tuple: pairs or triplets among this process's rows (or from them to its references), as
                index tensors or `PairMasks`.
            ref_emb: (R, D), this process's part of a separate reference set.
            ref_labels: (R,).

        Raises ValueError for index tuples where the loss does not split by anchor.
        """
        if not distributed.is_available() or not distributed.is_initialized() or self._world() == 1:
            return self.loss(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        if self._splits(ref_emb is not None):
            return self._by_anchor(embeddings, labels, indices_tuple, ref_emb, ref_labels)
        if indices_tuple is not None:
            raise ValueError(
                f"DistributedLossWrapper: {type(self.loss).__name__} takes no indices_tuple here, because "
                "it does not split by anchor"
            )
        given = [embeddings, labels, None, ref_emb, ref_labels]
        gathered = [None if part is None else self._gathered(part)[0] for part in given]
        return self.loss(*gathered)

    def _world(self) -> int:
        return distributed.get_world_size(self.group)

    def _splits(self, apart: bool) -> bool:
        loss = self.loss
        return (
            isinstance(loss, PairLoss)
            and type(loss).forward in (BaseLoss.forward, DirectLoss.forward)
            and not loss.not_by_anchor(apart)
            and loss.embedding_regularizer is None
            and "reducer" in loss.parts
            and not getattr(loss, "learn_beta", False)  # its penalty is one for all anchors
        )

    def _by_anchor(
        self, x: Tensor, labels: Tensor | None, indices: Any, ref_emb: Tensor | None, ref_labels: Any
    ) -> Tensor:
        loss: Any = self.loss
        own = loss.read(x, labels, indices, ref_emb, ref_labels)  # checks what this process was given
        rows = own.references
        references, first = self._gathered(rows)
        classes = own.reference_labels
        batch = Batch(
            own.embeddings,
            own.labels,
            _moved(own.indices, first),
            references,
            None if classes is None else self._gathered(classes)[0],
            own.given_dtype,
            own.autocast,
            masks=None if own.masks is None else _widened(own.masks, first, len(references)),
        )
        if ref_emb is None:
            batch.own, batch.among_itself = torch.arange(len(x), device=x.device) + first, True
        ledger = _Shared(self.group, x.device)
        with without_autocast(x):
            share = references.sum() * 0  # a process without pairs takes part in the backward pass as well
            for name, term in loss.compute(batch).items():
                share = share + share_of(loss.reducer, name, term, ledger, batch)
        whole = share.detach().clone()
        distributed.all_reduce(whole, group=self.group)
        value: Tensor = (share - share.detach()) * self._world() + whole
        return value

    def _gathered(self, part: Tensor) -> tuple[Tensor, int]:
        """The rows of all processes in order, and the number of the first that is this process's own."""
        size = torch.tensor([len(part)], device=part.device)
        sizes = [torch.zeros_like(size) for _ in range(self._world())]
        distributed.all_gather(sizes, size, group=self.group)
        counts = [int(count) for count in sizes]
        if part.requires_grad:
            rows: Tensor = _Gather.apply(part, counts, self.group)
        else:
            rows = _gather(part, counts, self.group)
        return rows, sum(counts[: distributed.get_rank(self.group)])


class _Shared(Ledger):
    """Counts of all processes: each entry is added up over them at once."""

    def __init__(self, group: Any, device: torch.device) -> None:
        super().__init__()
        self.group, self.device = group, device

    def entry(self, key: tuple[Any, ...], own: Any) -> Any:
        """The sum of every process's own number."""
        if key not in self._totals:
            total = own.detach().clone() if isinstance(own, Tensor) else torch.tensor(own, device=self.device)
            distributed.all_reduce(total, group=self.group)
            self._totals[key] = total
        return self._totals[key]


class _Gather(torch.autograd.Function):
    """Rows of all processes; the gradient of each row is the sum of what all processes give it."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, counts: list[int], group: Any) -> Tensor:
        ctx.counts, ctx.group = counts, group
        return _gather(part, counts, group)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        total = grads[0].contiguous().clone()
        distributed.all_reduce(total, group=ctx.group)
        rank = distributed.get_rank(ctx.group)
        first = sum(ctx.counts[:rank])
        return total[first : first + ctx.counts[rank]], None, None


def _gather(part: Tensor, counts: list[int], group: Any) -> Tensor:
    """Rows padded to one size, gathered and cut again."""
    largest = max(counts)
    padded = part.new_zeros(largest, *part.shape[1:])
    padded[: len(part)] = part.detach()
    parts = [torch.empty_like(padded) for _ in counts]
    distributed.all_gather(parts, padded, group=group)
    return torch.cat([rows[:count] for rows, count in zip(parts, counts, strict=True)])


def _widened(masks: PairMasks, first: int, references: int) -> PairMasks:
    """Masks over the references of all processes, of which this process's own begin at `first`."""
    both = []
    for mask in (masks.positive, masks.negative):
        wide = mask.new_zeros(len(mask), references)
        wide[:, first : first + mask.shape[1]] = mask
        both.append(wide)
    return PairMasks(*both)


def _moved(indices: Any, first: int) -> Any:
    """An index tuple whose references are counted among those of all processes."""
    if indices is None:
        return None
    if isinstance(indices, TripletIndices):
        return TripletIndices(indices.anchors, indices.positives + first, indices.negatives + first)
    pairs = as_pairs(indices)
    return PairIndices(pairs.pos_anchors, pairs.positives + first, pairs.neg_anchors, pairs.negatives + first)
