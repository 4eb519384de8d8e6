"""NPairsLoss on the rows that take part: two of each class, found by sorting."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from losslib.inputs import Batch
from losslib.terms import IndexedTerm


def n_pairs(loss: Any, batch: Batch) -> Tensor:
    """The reduced loss of a labelled batch, differentiable any number of times."""
    x, labels = batch.embeddings, batch.labels
    assert labels is not None
    labels, order = labels.to(torch.int64).sort(stable=True)
    new = torch.ones_like(labels, dtype=torch.bool)
    torch.ne(labels[1:], labels[:-1], out=new[1:])
    first = new[:-1].logical_and(new[1:].logical_not()).nonzero().squeeze(1)  # of classes of two or more
    anchors, partners = x.index_select(0, order[first]), x.index_select(0, order[first + 1])
    values: Tensor = loss.distance(anchors, partners)
    values = values if loss.distance.is_inverted else -values
    each = F.cross_entropy(values, torch.arange(len(first), device=x.device), reduction="none")
    value: Tensor = loss.reducer({"loss": IndexedTerm(each, first)}, x, None)
    return value + x.sum() * 0 if len(first) == 0 else value
