"""Where a run stood at a few of its steps, kept so that it can be continued from any of its frames."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from lab.run import Run

MOST = 8
ROOM = 4_000_000  # bytes a run, three states of the small CNN; thirty runs share one small server
FIRST_SPACING = 25


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Everything that the next step of a run depends on, but its config.

    Attributes:
        step: updates made.
        encoder, loss, optimizer: their states, copied.
        sampler: state of the generator that draws batches.
        random: state of the run's other random numbers.
        nbytes: memory of the tensors.
    """

    step: int
    encoder: dict[str, Any]
    loss: dict[str, Any]
    optimizer: dict[str, Any]
    sampler: Tensor
    random: tuple[Tensor, Tensor | None]
    nbytes: int


def taken(run: Run) -> Checkpoint:
    """The run as it stands now, between two steps."""
    trainer = run.trainer
    modules = (trainer.encoder, trainer.loss, trainer.optimizer)
    encoder, loss, optimizer = (copy.deepcopy(module.state_dict()) for module in modules)
    size = sum(map(_nbytes, (encoder, loss, optimizer)))
    return Checkpoint(
        run.steps_done,
        encoder,
        loss,
        optimizer,
        trainer.sampler.generator.get_state(),
        run.random.state,
        size,
    )


def _nbytes(state: Any) -> int:
    if isinstance(state, Tensor):
        return state.nbytes
    values = state.values() if isinstance(state, dict) else state if isinstance(state, list) else ()
    return sum(map(_nbytes, values))


class Checkpoints:
    """At most 8 of a run, at steps as evenly spaced as their room allows; it depends on the steps alone."""

    def __init__(self, room: int = ROOM) -> None:
        self.kept: list[Checkpoint] = []
        self._spacing = FIRST_SPACING
        self._room = room

    def look(self, run: Run) -> None:
        """Keep the run as it stands, if its step is one of those."""
        if run.steps_done % self._spacing or run.finished or not run.steps_done:
            return
        if any(one.step == run.steps_done for one in self.kept):
            return
        self.kept.append(taken(run))
        while len(self.kept) > MOST or (self.kept and sum(one.nbytes for one in self.kept) > self._room):
            self._spacing *= 2
            self.kept = [one for one in self.kept if one.step % self._spacing == 0]

    def before(self, step: int) -> Checkpoint | None:
        """The last one before a step, so that at least one step is made again; None for the start."""
        return max((one for one in self.kept if one.step < step), key=lambda one: one.step, default=None)

    def until(self, step: int) -> Checkpoints:
        """Those up to a step, for a run that goes on from there."""
        found = Checkpoints(self._room)
        found.kept, found._spacing = [one for one in self.kept if one.step <= step], self._spacing
        return found
