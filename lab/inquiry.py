"""What people ask of a run besides training: one phase at a time, and questions about its last step."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lab.asked import Question, answer
from lab.captions import phase_note
from lab.requested import Requested

if TYPE_CHECKING:
    from lab.config import RunConfig
    from lab.recording import Recording
    from lab.run import Run
    from lab.scheduler import Scheduler

KEPT_ANSWERS = 64
SHARE = 0.15  # of a training run's time that answers may take
_LOG = logging.getLogger("losslab")


class Inquired(Requested):
    """A run that is asked, and answers at its next slice.

    Attributes:
        phase_note: what the last phase did (see `lab.captions.phase_note`), None between whole steps.
    """

    def __init__(
        self, scheduler: Scheduler, config: RunConfig, owner: str, shown: Recording | None = None
    ) -> None:
        super().__init__(scheduler, config, owner, shown)
        self.phase_note: dict[str, Any] | None = None
        self._phases = 0
        self._questions: dict[tuple[str, str], Question] = {}
        self._answers: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self._known: tuple[Any, dict[Question, dict[str, Any]]] = (None, {})
        self._asked = 0
        self._answers_from = 0.0

    def phase(self) -> None:
        """Do the next of a step's six phases and wait; Play and Step finish a step that is under way."""
        self._leave_recording()
        with self._lock:
            self.sign_of_life()
            if self.state not in ("queued", "preparing", "ready", "paused", "running"):
                return
            self._phases += 1
            if self.state not in ("queued", "preparing"):
                self._set("paused")
        self._scheduler.wake()

    def play(self, until: int | None = None) -> None:
        """See `Requested.play`; a step that is under way is finished first."""
        self._phases = 0
        super().play(until)

    def reset(self, config: RunConfig | None = None, recording: Recording | None = None) -> None:
        """See `Requested.reset`; a step that is under way is forgotten."""
        super().reset(config, recording)
        with self._lock:
            self._phases, self.phase_note = 0, None

    def ask(self, viewer: str, question: Question) -> None:
        """Ask about the last step. A viewer's newer question of a kind replaces the older."""
        with self._lock:
            self._questions[viewer, question.do] = question
        self._scheduler.wake()

    def answers(self, viewer: str) -> dict[str, tuple[int, dict[str, Any]]]:
        """The last answer to each kind of question of a viewer, with a number that grows."""
        return {do: found for (who, do), found in tuple(self._answers.items()) if who == viewer}

    def detach(self, viewer: str) -> None:
        """Somebody watches no more, and needs no answers."""
        with self._lock:
            for do in ("batch", "why"):
                self._questions.pop((viewer, do), None)
                self._answers.pop((viewer, do), None)
        super().detach(viewer)

    def _owes_answer(self, now: float) -> bool:
        """Whether a question is to be answered now: at once while it rests, else now and then."""
        return bool(self._questions) and (self.state != "running" or now >= self._answers_from)

    def _answer(self, run: Run) -> None:
        """One question; answers are kept until the run goes on."""
        begun = self._clock()
        with self._lock:
            if not self._owes_answer(begun):
                return
            key = next(iter(self._questions))
            question = self._questions.pop(key)
        moment = (run, run.steps_done, run.under_way and run.under_way.done)
        if self._known[0] != moment:
            self._known = (moment, {})
        known = self._known[1]
        if question not in known:
            if len(known) >= KEPT_ANSWERS:
                known.clear()
            known[question] = _or_why_not(lambda: answer(run, question), {"partners": [], "rows": 0})
        with self._lock:
            self._asked += 1
            self._answers[key] = (self._asked, known[question])
            self._bump()
        now = self._clock()
        self._answers_from = now + (now - begun) / SHARE

    def _one_phase(self, run: Run) -> None:
        one = run.phase()
        note = _or_why_not(lambda: phase_note(run, one), {}) if one is not None else None
        with self._lock:
            if self._run is run:
                self._phases = max(self._phases - 1, 0)
                self.phase_note, self.step = note, run.steps_done


def _or_why_not(tell: Callable[[], dict[str, Any]], otherwise: dict[str, Any]) -> dict[str, Any]:
    """What is told, or a sentence where that fails: what cannot be explained can still be trained."""
    try:
        return tell()
    except Exception:
        _LOG.exception("a question about a step could not be answered")
        return {**otherwise, "reason": "This could not be worked out for this loss; training goes on."}
