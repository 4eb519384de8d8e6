"""Fused forms of the losses: value and gradient in one pass, chosen by themselves where they apply.

`loss(...)` takes a fused form without a switch and `loss.loss_terms(...)` explains the same value. `explain`
says which form a loss takes and why; `plain` forces the plain one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import nn

__all__ = ["explain", "is_plain", "plain"]

_PLAIN: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def plain() -> Iterator[None]:
    """Inside it every loss is computed from its terms, by automatic differentiation.

    Slower and larger, and differentiable any number of times. (The fused forms fall back to it themselves
    where a gradient is differentiated again.) Holds for the current thread or task.
    """
    token = _PLAIN.set(True)
    try:
        yield
    finally:
        _PLAIN.reset(token)


def is_plain() -> bool:
    """Whether `plain` is in force."""
    return _PLAIN.get()


def explain(
    loss: nn.Module, batch_size: int, references: int | None = None, device: str = "cpu", width: int = 128
) -> str:
    """Which form a loss takes for a labelled batch, and why, in one sentence.

    Args:
        loss: a loss of losslib.
        batch_size: number of rows B of the batch.
        references: number of rows R of a separate reference set, None without one.
        device: kind of device, such as "cpu" or "cuda".
        width: number of columns D of the embeddings.
    """
    from losslib.kernels.choice import Situation, choose

    choice = choose(loss, Situation(batch_size, references, device=device, width=width))
    return f"{type(loss).__name__}: {choice.form} form, because {choice.reason}"
