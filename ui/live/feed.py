"""What one viewer still has to be told about a run: the packets, whichever way they travel."""

from __future__ import annotations

import itertools
import secrets
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lab.insights import insights
from lab.pair_bins import pair_bins
from ui.live.about import describe
from ui.live.wire import (
    BATCH,
    WHY,
    mark_notes,
    pack_answer,
    pack_frame,
    pack_glance,
    pack_hello,
    pack_images,
    pack_links,
    pack_state,
    squeeze,
)

if TYPE_CHECKING:
    from datasets import Dataset
    from lab.frame import Frame
    from lab.recording import Recording
    from lab.scheduler import LiveRun

# Besides the newest frame a packet carries a few older ones, so that scrubbing has no gaps.
OLDER_FRAMES = 7
FRAMES_BEFORE_IMAGES = 10
ANSWERS = {"batch": BATCH, "why": WHY}
LARGEST_IMAGES = 16_000_000

# From a random start: after a restart of the server a number means another recording.
_EPOCH_NUMBERS = itertools.count(secrets.randbelow(65536))
_EPOCHS: WeakKeyDictionary[Recording, int] = WeakKeyDictionary()
_EPOCH_LOCK = threading.Lock()


class Feed:
    """Remembers what was sent to one viewer. Newest frame first, gaps of the history filled meanwhile.

    Args:
        run: what is watched.
        images: whether pictures are sent, once the first frames are through.
        skip: how many of the waiting frames to leave for another feed of the same viewer.
        viewer: whose questions are answered.
    """

    def __init__(self, run: LiveRun, images: bool = True, skip: int = 0, viewer: str = "") -> None:
        self.run = run
        self._viewer = viewer
        self._answered: dict[str, int] = {}
        self._links_of: int | None = None
        self._skip = skip
        self.epoch = 0
        self.frames_sent = 0  # glances included
        self._recording: Recording | None = None
        self._sent: set[int] = set()
        self._glanced = 0
        self._told: dict[str, Any] = {}
        self._owes_images = False
        self._wants_images = images

    def packet(self, with_frames: bool = True, hold_state: bool = False) -> bytes:
        """All that is new, or b"" if nothing is.

        Args:
            with_frames: else only the state, which is small.
            hold_state: whether a mere step count waits; it always goes along with a frame.
        """
        parts: list[bytes] = []
        if with_frames:
            parts += self._frames()
        state = state_of(self.run)
        held = hold_state and not parts and state["state"] == self._told.get("state")
        if state != self._told and not held:
            self._told = state
            parts.append(pack_state(self.epoch, state))
        if self._recording is not None and self._recording is self.run.recording:
            parts += self._answers() + self._links()
        return b"".join(parts)

    def _frames(self) -> list[bytes]:
        with self.run.held():  # data and recording of one run, never of two
            state, recording, data = self.run.state, self.run.recording, self.run.data
        if state in ("queued", "preparing"):
            return []  # the former run's frames are old news, the new one has none
        if recording is None or data is None or not recording.frames:
            return []
        frames = recording.frames
        parts: list[bytes] = []
        if recording is not self._recording:
            self._recording = recording
            self._sent, self._glanced = set(), 0
            self._told = {}
            self.epoch = epoch_of(recording)
            about = describe(recording.config, recording.labels, recording.class_names, recording.chance)
            parts.append(pack_hello(self.epoch, about, recording.probe, data.truth))
            self._owes_images = self._wants_images and data.images is not None
        waiting = [frame for frame in frames if frame.step not in self._sent]
        if waiting:
            chosen = [*self._older(waiting[:-1]), waiting[-1]]
            parts += [self._one(recording, frame) for frame in chosen]
        parts += self._glance(frames[-1].step)
        rest = not parts or self.frames_sent >= FRAMES_BEFORE_IMAGES
        if rest and self._owes_images and data.images is not None and data.images.nbytes <= LARGEST_IMAGES:
            # Pictures come after the first frames: they are only needed once somebody points at something.
            self._owes_images = False
            parts.append(pack_images(self.epoch, data.images, squeezed_images(data)))
        return parts

    def ask_links(self, step: int) -> None:
        """The viewer asks which pairs stand in which bin of that step's frame; the last question counts."""
        self._links_of = step

    def _links(self) -> list[bytes]:
        step, self._links_of = self._links_of, None
        recording, data = self._recording, self.run.data
        if step is None or recording is None or data is None:
            return []
        frame = next((frame for frame in recording.frames if frame.step == step), None)
        return [] if frame is None else [pack_links(self.epoch, pair_bins(recording, data, frame))]

    def _answers(self) -> list[bytes]:
        """Answers to this viewer's questions that were not sent yet."""
        parts = []
        for do, (number, told) in self.run.answers(self._viewer).items():
            if number > self._answered.get(do, 0):
                self._answered[do] = number
                parts.append(pack_answer(self.epoch, ANSWERS[do], told))
        return parts

    def _glance(self, framed: int) -> list[bytes]:
        """What was seen after the newest frame, unless it was sent."""
        glances = self.run.glances
        glance = glances.newest
        if glance is None or glance.step <= max(framed, self._glanced):
            return []
        self._glanced = glance.step
        self.frames_sent += 1
        return [pack_glance(self.epoch, glance, glances.taken * 1000)]

    def _older(self, waiting: list[Frame]) -> list[Frame]:
        start = self._skip % max(1, len(waiting))
        return waiting[start : start + OLDER_FRAMES]

    def _one(self, recording: Recording, frame: Frame) -> bytes:
        self._sent.add(frame.step)
        self.frames_sent += 1
        return pack_frame(self.epoch, frame, insights(recording, frame), self.run.glances.taken * 1000)


def epoch_of(recording: Recording) -> int:
    """A number of 16 bits that is this recording's own, whoever asks and however often it reconnects."""
    with _EPOCH_LOCK:
        return _EPOCHS.setdefault(recording, next(_EPOCH_NUMBERS) % 65536)


@lru_cache(maxsize=4)
def squeezed_images(data: Dataset) -> bytes:
    """The pictures of a data set, compressed once for all viewers."""
    return b"" if data.images is None else squeeze(data.images)


def state_of(run: LiveRun) -> dict[str, Any]:
    """Where the run stands, as the panel tells it."""
    with run.held():  # no state with the step or the reason of another
        told = {
            "state": run.state,
            "reason": run.reason,
            "step": run.step,
            "total": run.total,
            "speed": run.speed,
            "phase": run.phase_note,
        }
        events, marks = run.config.events, run.marks
    changes = [{"step": event.step, "name": event.name, "value": event.value} for event in events]
    return {**told, "events": changes, "marks": mark_notes(marks)}
