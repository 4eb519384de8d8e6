"""Lessons: one file each, with a question that is asked before the run and marked from the run itself.

A lesson is `<name>.toml`: what is trained, a question, the measures that answer it, and what to take away.
Where seeing it at once helps a class, `<name>.<run>.npz` holds the runs of its own seed, written by
`python -m lab.lessons --make`. Listing lessons imports no torch.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.lessons.question import Question, read_question
from lab.named import one_named

if TYPE_CHECKING:
    from lab.config import RunConfig
    from lab.recording import Recording

FOLDER = Path(__file__).parent
WORDS_A_MINUTE = 180  # of a text with figures in it


@dataclass(frozen=True)
class Door:
    """Where to go next.

    Args:
        text: what is found there.
        page: name of a page's file, such as "train".
        settings: what the link says.
    """

    text: str
    page: str
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LessonRun:
    """One of the runs of a lesson.

    Args:
        name: in measures and file names, such as "a".
        title: in words, a few.
        settings: what a link would say, without the seed.
    """

    name: str
    title: str
    settings: dict[str, str]


@dataclass(frozen=True)
class Lesson:
    """One lesson as its file declares it.

    Args:
        name: of its file, and in links.
        title: a few words.
        order: place among the others.
        aim: what one knows after it, one sentence that does not give the answer away.
        idea: what it is about, two or three sentences.
        task: what to look at while it runs, one or two sentences.
        question: what is asked before it runs.
        runs: one to three, trained one after the other.
        measures: name to declaration; "answer" marks a choice or a number.
        takeaway: what to remember; may name measures in braces.
        next: the next door.
        terms: words of the glossary that it needs.
    """

    name: str
    title: str
    order: int
    aim: str
    idea: str
    task: str
    question: Question
    runs: tuple[LessonRun, ...]
    measures: dict[str, dict[str, Any]]
    takeaway: str
    next: Door
    terms: tuple[str, ...] = ()

    @property
    def minutes(self) -> int:
        """About how long it takes: to read it, to predict, and to look at each run."""
        asked = self.question
        choices = [choice.text for choice in asked.choices]
        texts = [self.idea, self.task, asked.text, asked.why, self.takeaway, *choices]
        return round(len(" ".join(texts).split()) / WORDS_A_MINUTE + 0.5 + 0.5 * len(self.runs))

    @property
    def losses(self) -> tuple[str, ...]:
        """Names of the losses of its runs, each once."""
        return tuple(dict.fromkeys(run.settings["loss"] for run in self.runs))

    @property
    def recorded(self) -> bool:
        """Whether the runs of its own seed are shipped, and so shown at once."""
        return all(self.recording_file(run.name).exists() for run in self.runs)

    def configs(self, seed: int = 0) -> dict[str, RunConfig]:
        """Config of each run by its name. Raises ParameterError when the settings are wrong."""
        from lab.config import RunConfig

        return {run.name: RunConfig.from_settings({**run.settings, "seed": str(seed)}) for run in self.runs}

    def recording_file(self, run: str) -> Path:
        """The run file that may be shipped for one of its runs."""
        return FOLDER / f"{self.name}.{run}.npz"

    def shipped(self, seed: int = 0) -> dict[str, Recording]:
        """The shipped recordings by name of the run, if there is one for every run and the seed is theirs.

        Raises ParameterError when a file is damaged.
        """
        if seed != 0 or not self.recorded:
            return {}
        return {run.name: _recording(self.name, run.name) for run in self.runs}


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons by order."""
    found = [read_lesson(file) for file in FOLDER.glob("*.toml")]
    return tuple(sorted(found, key=lambda lesson: (lesson.order, lesson.name)))


def get(name: str) -> Lesson:
    """The lesson of that name. Raises ParameterError naming near misses."""
    return one_named(name, lessons(), "lesson")


def read_lesson(file: Path) -> Lesson:
    """The lesson that a file declares."""
    plain = tomllib.loads(file.read_text(encoding="utf-8"))
    shared = plain.pop("settings", {})
    runs = tuple(
        LessonRun(name, run.pop("title"), texts({**shared, **run})) for name, run in plain.pop("runs").items()
    )
    door = plain.pop("next")
    return Lesson(
        name=file.stem,
        runs=runs,
        question=read_question(plain.pop("question")),
        next=Door(door["text"], door["page"], texts(door.get("settings", {}))),
        terms=tuple(plain.pop("terms", ())),
        **plain,
    )


def texts(settings: dict[str, Any]) -> dict[str, str]:
    """Settings as a link spells them."""
    return {key: str(value) for key, value in settings.items()}


@cache
def _recording(name: str, run: str) -> Recording:
    from lab.recording import Recording

    return Recording.load(get(name).recording_file(run))
