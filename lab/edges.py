"""What a loss gives at the edges: everything in one point, no positives, one class. Tried, not looked up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from lab.scenes import built
from lab.short import short
from losslib import catalog
from losslib.two_views import TwoViewLoss

ROWS = 6


@dataclass(frozen=True)
class Edge:
    """One batch that is easily forgotten.

    Attributes:
        title: the batch in a few words.
        value: the loss on it, None where the loss refuses it.
        gradient: the largest coordinate of the gradient by the embeddings, None where refused.
        sentence: the batch, value and gradient in words, or how it is refused.
    """

    title: str
    value: float | None
    gradient: float | None
    sentence: str


@cache
def edges(name: str) -> tuple[Edge, ...]:
    """What the loss of that name gives with its defaults. Raises ParameterError for no loss."""
    cls = catalog.get(name)
    point = torch.tensor([[1.0, 1.0, -1.0, -1.0]], dtype=torch.float64).expand(ROWS, 4) / 2
    spread = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if issubclass(cls, TwoViewLoss):
        return (
            tried(cls, "Collapse", f"all {ROWS} rows of both views in one point", point, point),
            tried(cls, "One sample", "a batch of one sample, both views alike", spread[:1], spread[:1]),
        )
    halves = torch.tensor([0, 0, 0, 1, 1, 1])
    same = torch.zeros(ROWS, dtype=torch.int64)
    found = [tried(cls, "Collapse", f"all {ROWS} rows of two classes in one point", point, halves)]
    if "num_classes" not in cls.required and "class_counts" not in cls.required:
        found.append(tried(cls, "No positives", f"{ROWS} rows of {ROWS} classes", spread, torch.arange(ROWS)))
    found.append(tried(cls, "One class", f"{ROWS} rows of one class", spread, same))
    return tuple(found)


def tried(cls: type[Any], title: str, batch: str, embeddings: Tensor, other: Tensor) -> Edge:
    """The loss called once; `other` is the labels, or the second view where it is floating."""
    x = embeddings.clone().requires_grad_()
    try:
        loss = built(cls)
        value = loss(x, ref_emb=other) if other.is_floating_point() else loss(x, other)
        (gradient,) = torch.autograd.grad(value, x, allow_unused=True, materialize_grads=True)
    except (ValueError, TypeError) as error:
        return Edge(title, None, None, f"On {batch} it refuses: {error}.")
    drawn = " and the proxies as they are drawn" if cls.required else ""
    level, steepest = float(value.detach()), float(gradient.abs().max())
    moves = "no gradient" if steepest < 1e-9 else f"a gradient (largest coordinate {short(steepest)})"
    return Edge(
        title, level, steepest, f"On {batch}{drawn} the loss is {round(level, 4) + 0.0:g}, with {moves}."
    )
