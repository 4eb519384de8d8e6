"""The failure gallery: one file a failure, with its symptoms, the gauge that shows it first, and its cure."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.named import one_named

if TYPE_CHECKING:
    from lab.config import RunConfig

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Failure:
    """One failure as its file declares it.

    Args:
        name: of its file, and in links.
        title: a few words.
        order: place among the others.
        symptoms: what is seen, two or three sentences.
        gauge: which gauge shows it first, and how, one sentence.
        detector: kind of the finding that names it.
        cure_title: on the button, a few words.
        cure_text: why it helps, one sentence.
        settings: what a link would say.
        cure: the settings that cure it; an empty text removes one.
        terms: words of the glossary that it needs.
    """

    name: str
    title: str
    order: int
    symptoms: str
    gauge: str
    detector: str
    cure_title: str
    cure_text: str
    settings: dict[str, str]
    cure: dict[str, str]
    terms: tuple[str, ...] = ()

    def config(self, seed: int = 0) -> RunConfig:
        """The run that fails. Raises ParameterError when the settings are wrong."""
        return _config(self.settings, seed)

    def cured(self, seed: int = 0) -> RunConfig:
        """The same run with the cure. Raises ParameterError when the settings are wrong."""
        both = {**self.settings, **self.cure}
        return _config({key: text for key, text in both.items() if text}, seed)


def _config(settings: dict[str, str], seed: int) -> RunConfig:
    from lab.config import RunConfig

    return RunConfig.from_settings({**settings, "seed": str(seed)})


@cache
def failures() -> tuple[Failure, ...]:
    """All failures by order."""
    found = [_read(file) for file in FOLDER.glob("*.toml")]
    return tuple(sorted(found, key=lambda failure: (failure.order, failure.name)))


def get(name: str) -> Failure:
    """The failure of that name. Raises ParameterError naming near misses."""
    return one_named(name, failures(), "failure")


def _read(file: Path) -> Failure:
    plain: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    settings, cure = (
        {key: str(value) for key, value in plain.pop(part).items()} for part in ("settings", "cure")
    )
    terms = tuple(plain.pop("terms", ()))
    return Failure(name=file.stem, settings=settings, cure=cure, terms=terms, **plain)
