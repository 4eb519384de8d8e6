"""Presets: settings worth seeing, each shipped as a recording, so that looking needs no training.

A preset is one file of words and settings, `<name>.toml`, and the run file that `python -m lab.presets
--make` trains from it, `<name>.npz`. Listing them and their pictures imports no torch.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lab.named import one_named

if TYPE_CHECKING:
    from lab.config import RunConfig
    from lab.recording import Recording

FOLDER = Path(__file__).parent
GOOD, FAILURE = "good", "failure"


@dataclass(frozen=True)
class Preset:
    """One preset as its file declares it.

    Args:
        name: of its files, and in links.
        title: a few words.
        kind: "good" or "failure".
        order: place among the others.
        look: what to look for, one sentence.
        cure: for a failure, what helps, one sentence; else "".
        settings: what a link would say.
    """

    name: str
    title: str
    kind: str
    order: int
    look: str
    cure: str
    settings: dict[str, str]

    @property
    def recording_file(self) -> Path:
        """The run file that is shipped with it."""
        return FOLDER / f"{self.name}.npz"

    def config(self) -> RunConfig:
        """The config that its settings stand for. Raises ParameterError when they are wrong."""
        from lab.config import RunConfig

        return RunConfig.from_settings(self.settings)

    def recording(self) -> Recording:
        """The shipped recording, read once a process. Raises ParameterError when the file is damaged."""
        return _recording(self.name)


@cache
def presets() -> tuple[Preset, ...]:
    """All presets: the good ones, then the failures, each by order."""
    found = (_read(file) for file in FOLDER.glob("*.toml"))
    return tuple(sorted(found, key=lambda preset: (preset.kind != GOOD, preset.order, preset.name)))


def get(name: str) -> Preset:
    """The preset of that name. Raises ParameterError naming near misses."""
    return one_named(name, presets(), "preset")


@cache
def _recording(name: str) -> Recording:
    from lab.recording import Recording

    return Recording.load(get(name).recording_file)


def _read(file: Path) -> Preset:
    plain = tomllib.loads(file.read_text(encoding="utf-8"))
    settings = {key: str(value) for key, value in plain.pop("settings").items()}
    return Preset(name=file.stem, settings=settings, **{"cure": "", **plain})
