"""A run: a generator of steps that trains, looks and records. It does not draw, print, sleep or know threads.

`python -m lab.run --help` trains from the command line.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import datasets
from lab.batchview import BatchLook, look_at_batch
from lab.config import LEARNING_RATE, Event, RunConfig, check_event
from lab.devices import one_thread, resolve_device
from lab.first_look import first_look
from lab.frame import Frame, Glance
from lab.pairing import class_refusal
from lab.phases import PHASES, OneStep
from lab.probe import Probe
from lab.randomness import RandomState, undisturbed
from lab.recording import Recording, is_frame_step
from lab.runfile import provenance
from lab.trainer import Trainer
from losslib.errors import ParameterError
from losslib.types import Mark

if TYPE_CHECKING:
    from lab.checkpoints import Checkpoint
    from lab.probe import Snapshot

MAP_EVERY = 10
AT_ONCE = 20  # steps in which a changed option shows what it does


class Run:
    """One training run; equal configs give equal recordings, bit for bit on one machine.

    `start()` makes frame 0, before any update; each `step()` then makes one update and returns a frame on
    the steps of `is_frame_step` and on the last one. Iterating does both.

    Args:
        config: what to train. Its events are replayed at their steps.

    Raises:
        ParameterError: what the config asks for cannot be done with its data or on this machine.
    """

    def __init__(self, config: RunConfig) -> None:
        one_thread()
        self.config = config
        self.device = resolve_device(config)
        self.data = datasets.load(config.data, config.seed, **config.data_values)
        classes = len(self.data.class_names)
        if why := class_refusal(config.loss, config.loss_values, config.pairing, classes):
            raise ParameterError(f"run: {why}")
        self.random = RandomState(config.seed, self.device)
        with self.random.swapped_in():
            self.trainer = Trainer(config, self.data, self.device)
        self.probe = Probe(
            self.data, not self.trainer.free, config.seed, config.dim, config.pairing, config.delta
        )
        self._probe_rows = torch.from_numpy(self.probe.index.copy()).to(self.device)
        self.recording = Recording(
            config, self.probe.index, self.data.truth[self.probe.index], self.data.class_names
        )
        self.recording.chance = self.probe.chance
        self.recording.provenance = provenance(self.device.type)
        self.steps_done = 0
        self.reason = ""
        self.under_way: OneStep | None = None  # a step of which some phases are done
        self.last: OneStep | None = None  # the last step done; at first the first batch, not yet learned from
        self._frames = 0
        self._next_rows: Tensor | None = None
        self._rate = config.lr

    @property
    def diverged(self) -> bool:
        """Whether the run stopped because something is not finite; `reason` says what."""
        return bool(self.reason)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.diverged or self.steps_done >= self.config.steps

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Margins and temperature in force, with changes that wait for the next step."""
        self._apply(self.steps_done + 1)
        return tuple(self.trainer.loss.marks())

    def __iter__(self) -> Iterator[Frame | None]:
        if not self.recording.frames:
            yield self.start()
        while not self.finished:
            yield self.step()

    def start(self) -> Frame | None:
        """Frame 0: the first batch and the probe before any update."""
        with self.random.swapped_in():
            one = OneStep(self.trainer)
            one.until("loss")
            self._next_rows = one.rows
            if not self._all_finite(one.value, one.embeddings, 0):
                return None
            look = self._look(one)
            parameters = list(self.trainer.encoder.parameters())
            gradients = torch.autograd.grad(one.value, parameters, allow_unused=True)
            norms = [g.norm() for g in gradients if g is not None]
            norm = float(torch.stack(norms).norm()) if norms else 0.0
            one.let_go()
            self.last = one
            return self._record(0, float(one.value), norm, look)

    def step(self, look: bool = False) -> Frame | None:
        """One update; the frame if one falls on it. After the last step, or divergence, nothing happens.

        Args:
            look: asks for a frame in any case; between two regular ones it is marked as extra.
        """
        if not self.recording.frames and not self.diverged:
            self.start()
        if self.finished:
            return None
        with self.random.swapped_in():
            return self._step(self.steps_done + 1, look)

    def phase(self) -> OneStep | None:
        """The next of the six phases of a step, None once the run is over; the sixth makes it a step.

        Six phases change and record what one `step(look=True)` does, bit for bit. `step` finishes a step that
        is under way.
        """
        if not self.recording.frames and not self.diverged:
            self.start()
        if self.finished:
            return None
        with self.random.swapped_in():
            step = self.steps_done + 1
            one = self.under_way = self.under_way or self._begin(step)
            if one.done == len(PHASES) - 1:
                self._step(step, True)
                return one
            one.advance()
            if one.phase == "loss" and not self._all_finite(one.value, one.embeddings, step):
                self.under_way = None
        return one

    def glance(self) -> Glance | None:
        """Map and histograms as they are now, not recorded; None when they are not finite.

        The run goes on as if it had not been looked at: its recording stays the same, bit for bit.
        """
        with undisturbed():
            embeddings, views = self._embed_probe()
            return self.probe.glance(self.steps_done, embeddings, self.trainer.loss, views)

    def change(self, name: str, value: Any) -> Event:
        """Set a loss option, or "lr", from the next step on; recorded as an event of the config.

        Raises:
            ParameterError: not an option that may change, or a value outside its domain.
        """
        event = check_event(Event(self.steps_done + 1, name, value), self.config.loss)
        self.config = self.config.with_event(event)
        if event not in self.config.events:
            self._turn(event)  # back to what it was, after the next step's value had been set already
        self.recording.config = self.config
        return event

    def retrace(self) -> None:
        """One update as `step` makes it, but unseen: no frame, whatever the step."""
        with self.random.swapped_in():
            step = self.steps_done + 1
            one = self._begin(step)
            one.until("loss")
            if self._all_finite(one.value, one.embeddings, step):
                one.until("update")
                self.steps_done, self.last = step, one

    def stand_at(self, checkpoint: Checkpoint) -> None:
        """Stand where a run stood that has had the same config up to there; made anew for it, not started."""
        trainer = self.trainer
        for event in self.config.events:
            if event.step <= checkpoint.step:
                self._turn(event)
        trainer.encoder.load_state_dict(checkpoint.encoder)
        trainer.loss.load_state_dict(checkpoint.loss)
        trainer.optimizer.load_state_dict(checkpoint.optimizer)
        trainer.sampler.generator.set_state(checkpoint.sampler)
        self.random.state = checkpoint.random
        self.steps_done, self._next_rows = checkpoint.step, None

    def take_over(self, recording: Recording) -> None:
        """Go on with a recording that ends with this run's last regular frame so far."""
        self.recording = recording
        self._frames = len(recording.curves()["step"])
        self.probe.resume(next(frame for frame in reversed(recording.frames) if not frame.extra))

    def extend(self, steps: int) -> None:
        """Make the run that many updates long; the frames equal those of a run configured so at first."""
        config = self.config.replace(steps=steps)
        if steps > self.config.steps <= self.steps_done and self._frames:
            self._frames -= self.recording.reopen(MAP_EVERY, self._frames - 1)
            self.probe.resume(self.recording.latest)
        self.config = self.recording.config = config

    def _step(self, step: int, by_hand: bool) -> Frame | None:
        one = self.under_way or self._begin(step)
        self.under_way = None
        one.until("loss")
        if not self._all_finite(one.value, one.embeddings, step):
            return None
        regular = is_frame_step(step) or step >= self.config.steps
        look = self._look(one) if regular or by_hand else None
        one.until("update")
        self.steps_done, self.last = step, one
        if look is None:
            return None
        return self._record(step, float(one.value), self.trainer.gradient_norm(), look, extra=not regular)

    def _begin(self, step: int) -> OneStep:
        self._apply(step)
        rows, self._next_rows = self._next_rows, None
        return OneStep(self.trainer, rows)

    def _apply(self, step: int) -> None:
        for event in self.config.events:
            if event.step == step:
                self._turn(event)

    def _turn(self, event: Event) -> None:
        self.trainer.change(event.name, event.value)
        if event.name == LEARNING_RATE:
            self._rate = event.value

    def _look(self, one: OneStep) -> BatchLook:
        paired = one.paired
        embeddings = one.embeddings.detach()
        return look_at_batch(self.trainer.loss, embeddings, paired.labels, paired.index, paired)

    def _record(
        self, step: int, loss: float, norm: float, seen: BatchLook, extra: bool = False
    ) -> Frame | None:
        """The frame after the update, added to the recording; None when the probe is not finite."""
        with_map = not extra and (self._frames % MAP_EVERY == 0 or step >= self.config.steps)
        regular = self.probe.state

        def look() -> Snapshot | None:
            embeddings, views = self._embed_probe()
            return self.probe.look(embeddings, self.trainer.loss, with_map, views)

        snapshot = look() if step else first_look(self, look)
        if extra:
            self.probe.state = regular  # the next regular frame is as if this one had not been
        if snapshot is None:
            self._stop("embeddings stopped being finite numbers", step)
            return None
        frame = Frame(
            step=step,
            loss=loss,
            active_share=seen.active_share,
            gradient_norm=norm,
            learning_rate=self._rate,
            batch=seen.view,
            terms=seen.terms,
            marks=tuple(self.trainer.loss.marks()),
            extra=extra,
            **snapshot._asdict(),
        )
        self._frames += not extra
        self.recording.add(frame)
        return frame

    def _embed_probe(self) -> tuple[Tensor, Tensor | None]:
        """Embeddings of the probe's points, and of the views of them that it compares."""
        inputs = self.probe.view_inputs
        views = None if inputs is None else self.trainer.embed_inputs(inputs)
        return self.trainer.embed(self._probe_rows), views

    def _all_finite(self, loss: Tensor, embeddings: Tensor, step: int) -> bool:
        # a hinge of NaN can count as no hinge at all, so the embeddings are asked as well
        if bool(loss.isfinite() & embeddings.isfinite().all()):
            return True
        value = float(loss.detach())
        if math.isfinite(value) or (step == 0 and not bool(embeddings.isfinite().all())):
            self._stop("embeddings stopped being finite numbers", step)
        else:
            self._stop(f"loss became {'NaN' if math.isnan(value) else 'infinite'}", step)
        return False

    def _stop(self, what: str, step: int) -> None:
        if step == 0:  # the learning rate has had no part in it
            cure = self._loss_cure() if what.startswith("loss") else "look at the values of the data"
            self.reason = (
                f"The {what.replace('stopped being', 'are not')} at step 0, before any update: {cure}."
            )
        else:
            cure = self._turn_back(step) or f"lower the learning rate (it was {self._rate:g})"
            if self.config.output == "none":
                cure += " or normalise the output"
            self.reason = f"The {what} at step {step}: {cure}."
        self.recording.reason = self.reason

    def _turn_back(self, step: int) -> str:
        """What to change where an option of the loss was turned shortly before, "" where none was."""
        last = max((event for event in self.config.events if event.step <= step), default=None)
        if last is None or last.name == LEARNING_RATE or step - last.step > AT_ONCE:
            return ""
        before = [event.value for event in self.config.events if event.name == last.name and event < last]
        was = before[-1] if before else self.config.loss_values[last.name]
        param = self.trainer.loss.params[last.name]
        return (
            f"{last.name} was set to {param.format(last.value)} at step {last.step}; "
            f"set it back (it was {param.format(was)}) or lower the learning rate"
        )

    def _loss_cure(self) -> str:
        """What to change where finite embeddings give no finite loss: options other than the default."""
        params, values = self.trainer.loss.params, self.config.loss_values
        changed = [
            f"{name}={param.format(values[name])}"
            for name, param in params.items()
            if name in values and values[name] != param.default
        ]
        return f"change the options of the loss ({', '.join(changed) or 'all at their defaults'})"


if __name__ == "__main__":
    import signal

    from lab.command import main

    if hasattr(signal, "SIGPIPE"):  # a reader that has seen enough, such as head, ends it quietly
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    raise SystemExit(main())
