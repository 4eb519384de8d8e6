"""The loss's call in the last step once more, in double precision, and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lab.phases import PHASES, OneStep
from lab.why import gradient_of
from losslib.pairs import PairMasks

if TYPE_CHECKING:
    from lab.run import Run


def exact_call(run: Run, one: OneStep) -> tuple[Any, Tensor, dict[str, Any]]:
    """The loss as it was, the embeddings and the other inputs, in double precision on the CPU."""
    loss = one.seen.restored(run.trainer.loss).cpu().double()
    if run.trainer.takes_halves:
        loss = Halves(loss)
    inputs = {name: _on_cpu(value) for name, value in one.inputs.items()}
    return loss, one.embeddings.detach().cpu().double(), inputs


def _on_cpu(value: Any) -> Any:
    if isinstance(value, PairMasks):
        return PairMasks(value.positive.cpu(), value.negative.cpu())
    return value.cpu() if isinstance(value, Tensor) else type(value)(*(part.cpu() for part in value))


class Halves(nn.Module):
    """A loss of two views, called on all first views and then all second ones."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss, self.title, self.family = loss, loss.title, loss.family

    def forward(self, embeddings: Tensor) -> Tensor:
        """The loss, 0-d, of (2 B, D)."""
        first, second = embeddings.chunk(2)
        value: Tensor = self.loss(first, ref_emb=second)
        return value


def samples_of(run: Run, one: OneStep) -> Tensor:
    """Data set index of every row of the embeddings, (R,), or of the rows drawn before there are any."""
    rows = run.trainer.train_index[one.rows.cpu()]
    return rows.repeat(2) if has(one, "embed") and len(one.embeddings) > len(rows) else rows


def gradients(run: Run, one: OneStep) -> Tensor:
    """dL/de of every row of a step's batch, (R, D) in double precision."""
    loss, embeddings, inputs = exact_call(run, one)
    torch.set_rng_state(one.seen.random)
    return gradient_of(loss, embeddings, **inputs)


def step_of(run: Run, one: OneStep) -> int:
    """The number of a step: the last one done, or the one under way."""
    return run.steps_done if one is run.last else run.steps_done + 1


def has(one: OneStep, phase: str) -> bool:
    """Whether that phase of it is done."""
    return one.done > PHASES.index(phase)
