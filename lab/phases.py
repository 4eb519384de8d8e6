"""One step in six phases, taken at once or one by one: the same operations in the same order either way."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from lab.randomness import undisturbed

if TYPE_CHECKING:
    from lab.trainer import Trainer

PHASES = ("sample", "embed", "pair", "loss", "gradient", "update")


class OneStep:
    """A step under way, and once it is over what can be asked about it.

    Args:
        trainer: what it changes.
        rows: of the batch, where it was drawn before; else it is drawn in the first phase.

    Attributes:
        done: number of phases done.
        rows: of the batch among the training points, (B,).
        embeddings: (B, D), as the loss sees them; detached once the step is over.
        labels: (B,), the classes.
        inputs: what the loss is called with besides the embeddings.
        seen: the loss as it was when it was called.
        value: the loss, 0-d; detached once the step is over.
    """

    rows: Tensor
    embeddings: Tensor
    labels: Tensor
    inputs: dict[str, Any]
    seen: Seen
    value: Tensor

    def __init__(self, trainer: Trainer, rows: Tensor | None = None) -> None:
        self.trainer = trainer
        self.done = 0
        self._given = rows

    def __repr__(self) -> str:
        return f"OneStep({self.done} of {len(PHASES)} phases done)"

    @property
    def phase(self) -> str:
        """Name of the last phase done, "" before the first."""
        return PHASES[self.done - 1] if self.done else ""

    def advance(self) -> None:
        """The next phase."""
        getattr(self, f"_{PHASES[self.done]}")()
        self.done += 1

    def until(self, phase: str) -> None:
        """All phases up to this one that are not done yet."""
        while self.done <= PHASES.index(phase):
            self.advance()

    def _sample(self) -> None:
        self.rows = self.trainer.draw() if self._given is None else self._given

    def _embed(self) -> None:
        self.random = torch.get_rng_state()
        self.embeddings, self.labels = self.trainer.embed_batch(self.rows)

    def _pair(self) -> None:
        self.paired = self.trainer.pair(self.rows, self.embeddings, self.labels)
        self.inputs = self.paired.inputs

    def _loss(self) -> None:
        self.seen = Seen(self.trainer.loss)
        self.value = self.trainer.value(self.embeddings, self.inputs)

    def _gradient(self) -> None:
        self.trainer.backward(self.value)

    def _update(self) -> None:
        self.trainer.update()
        self.let_go()

    def let_go(self) -> None:
        """Forget the graph of the gradient, which holds every layer's numbers."""
        self.embeddings, self.value = self.embeddings.detach(), self.value.detach()


class Seen:
    """A loss as it was when a step called it: its tensors, its options, and the random state.

    The update moves what the loss learns, and a margin may change before anybody asks about the step.
    """

    def __init__(self, loss: Any) -> None:
        self.random = torch.get_rng_state()
        self.tensors = {name: value.clone() for name, value in loss.state_dict().items()}
        self.options = {name: getattr(loss, name) for name in loss.params if name not in self.tensors}

    def restored(self, loss: Any) -> Any:
        """A copy of the loss as it was then."""
        then = copy.deepcopy(loss)
        for name, value in self.options.items():
            setattr(then, name, value)
        then.load_state_dict(self.tensors)
        return then


def embedded_again(one: OneStep) -> Tensor:
    """Embeddings (R, D) of a step's batch, its augmentations the same, with the encoder as it is now.

    Nothing changes by it, not even what a batch normalisation remembers.
    """
    encoder = one.trainer.encoder
    held = [buffer.clone() for buffer in encoder.buffers()]
    with undisturbed(), torch.no_grad():
        torch.set_rng_state(one.random)
        embeddings, _ = one.trainer.embed_batch(one.rows)
        for buffer, value in zip(encoder.buffers(), held, strict=True):
            buffer.copy_(value)
    return embeddings
