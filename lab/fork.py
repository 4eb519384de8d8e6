"""A run continued from one of its frames with other knobs: made again up to there, unseen, and then new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.checkpoints import Checkpoint
from lab.config import Event, RunConfig, in_force
from lab.recording import Recording
from lab.run import Run


def forked(config: RunConfig, step: int, values: Mapping[str, Any]) -> RunConfig:
    """The config of a run that is the same up to a step and has these knobs from the next one on.

    Args:
        config: of the run that is continued. What was changed after the step is dropped.
        step: the last step that stays.
        values: loss options and "lr" that may change while it trains; names that are missing stay.
    """
    found = config.replace(events=tuple(event for event in config.events if event.step <= step))
    known = in_force(found)
    for name, value in values.items():
        if known[name] != value:
            found = found.with_event(Event(step + 1, name, value))
    return found


def beginning(recording: Recording, config: RunConfig, step: int) -> Recording:
    """The frames and curves of a recording up to a step, as the beginning of another run's recording."""
    kept = Recording(config, recording.probe, recording.labels, recording.class_names)
    kept.chance, kept.provenance = recording.chance, recording.provenance
    kept.frames = [frame for frame in recording.frames if frame.step <= step]
    curves = recording.curves()
    before = curves["step"] <= step
    kept.restore_curves({name: curve[before] for name, curve in curves.items()})
    return kept


def is_whole(recording: Recording, step: int) -> bool:
    """Whether the last regular frame up to a step is still there: the next frame's map is turned to it."""
    steps = recording.curves()["step"]
    before = steps[steps <= step]
    last = max((f.step for f in recording.frames if f.step <= step and not f.extra), default=None)
    return len(before) > 0 and last == int(before[-1])


class Fork:
    """The way back to a step: `advance` makes one of its steps again, until `arrived`.

    Args:
        config: what `forked` gave.
        step: where the run is continued.
        recording: of the run that is continued, made on this very machine; its frames are taken over.
            None makes every frame again.
        checkpoint: of that run, before the step; None begins at the start.
    """

    def __init__(
        self,
        config: RunConfig,
        step: int,
        recording: Recording | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.config, self.step = config, step
        usable = recording is not None and is_whole(recording, step)
        self._recording = recording if usable else None
        self._checkpoint = checkpoint if usable else None
        self.first = 0 if self._checkpoint is None else self._checkpoint.step
        self.run: Run | None = None

    @property
    def done(self) -> int:
        """The step it has come to."""
        return self.first if self.run is None else self.run.steps_done

    @property
    def arrived(self) -> bool:
        """Whether the run stands at the step, or has broken down on the way."""
        return self.run is not None and (self.run.diverged or self.run.steps_done >= self.step)

    def advance(self) -> None:
        """The run is made, or one step of it."""
        if self.run is None:
            self.run = Run(self.config)
            if self._checkpoint is not None:
                self.run.stand_at(self._checkpoint)
            else:
                self.run.start()
        elif self._recording is None:
            self.run.step()
        else:
            self.run.retrace()
        if self.arrived and self._recording is not None and not self.run.diverged:
            self.run.take_over(beginning(self._recording, self.config, self.step))
