"""A moment that a teacher links to: settings, a frozen step, the controls that show, and a question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lab.config import LEARNING_RATE, RunConfig, live_options
from lab.links import read_settings
from losslib.errors import ParameterError
from losslib.params import Integer, Param

RUN, STEP, SHOW, ASK, ANSWERS = ("learn.run", "learn.step", "learn.show", "learn.ask", "learn.answers")
KEYS = (RUN, STEP, SHOW, ASK, ANSWERS)
BUTTONS = ("Play", "Pause", "Step", "Reset")
MOST_LETTERS, MOST_ANSWERS, ANSWER_LETTERS = 300, 5, 80
BETWEEN = "~"


@dataclass(frozen=True)
class Moment:
    """What the link holds.

    Args:
        config: the run.
        step: where it is frozen; 0 before the first update.
        show: what shows: names of buttons and of options that may change while it trains.
        ask: the question, or "".
        answers: two to five of them to choose from, or none for a question to talk about.
    """

    config: RunConfig
    step: int = 0
    show: tuple[str, ...] = ()
    ask: str = ""
    answers: tuple[str, ...] = field(default=())

    def texts(self) -> dict[str, str]:
        """The moment as a link says it."""
        run = BETWEEN.join(f"{key}={text}" for key, text in self.config.to_settings().items())
        texts = {
            RUN: run,
            STEP: str(self.step) if self.step else "",
            SHOW: ",".join(self.show),
            ASK: self.ask,
            ANSWERS: BETWEEN.join(self.answers),
        }
        return {key: text for key, text in texts.items() if text}


def controls_of(config: RunConfig) -> tuple[str, ...]:
    """Everything a moment of that run may show."""
    return (*BUTTONS, *live_options(config.loss), LEARNING_RATE)


def moment(
    config: RunConfig, step: int = 0, show: tuple[str, ...] = (), ask: str = "", answers: tuple[str, ...] = ()
) -> Moment:
    """A moment, checked. Raises ParameterError."""
    step = Param(0, valid=Integer(0, config.steps), name="step").check(step, "moment")
    known = controls_of(config)
    if wrong := [name for name in show if name not in known]:
        raise ParameterError(f"a moment can show {', '.join(known)}, not {wrong[0]!r}")
    if len(ask) > MOST_LETTERS:
        raise ParameterError(f"a question may have {MOST_LETTERS} letters, got {len(ask)}")
    if answers and not 2 <= len(answers) <= MOST_ANSWERS:
        raise ParameterError(f"a question has 2 to {MOST_ANSWERS} answers to choose from, got {len(answers)}")
    if len(set(answers)) < len(answers):
        raise ParameterError("two of the answers are the same")
    if any(not 0 < len(answer) <= ANSWER_LETTERS for answer in answers):
        raise ParameterError(f"an answer has 1 to {ANSWER_LETTERS} letters")
    if any(BETWEEN in answer for answer in answers):
        raise ParameterError(f"an answer has no {BETWEEN} in it, which parts the answers in the link")
    if answers and not ask:
        raise ParameterError("there are answers, but no question")
    return Moment(config, step, tuple(dict.fromkeys(show)), ask, answers)


def read_moment(texts: Mapping[str, str]) -> tuple[Moment, tuple[str, ...]]:
    """The moment of a link, and a sentence for each thing that was refused and left out."""
    plain = dict(
        part.split("=", 1) for part in texts.get(RUN, "").split(BETWEEN) if "=" in part
    )  # the last of two of one name counts
    config, refusals = read_settings(plain)
    found: dict[str, object] = {}
    said = list(refusals)
    answers = tuple(filter(None, map(str.strip, texts.get(ANSWERS, "").split(BETWEEN))))
    show = tuple(filter(None, texts.get(SHOW, "").split(",")))
    for name, value in (("ask", texts.get(ASK, "").strip()), ("show", show), ("answers", answers)):
        try:
            moment(config, **{**found, name: value})  # type: ignore[arg-type]
            found[name] = value
        except ParameterError as error:
            said.append(str(error))
    try:
        step = Param(0, valid=Integer(0, config.steps), name="step").parse(texts.get(STEP, "0"), "moment")
    except ParameterError as error:
        step = 0
        said.append(str(error))
    return moment(config, step, **found), tuple(said)  # type: ignore[arg-type]
