"""The comparison that the page opens with, shipped as run files: `python -m lab.compare --make`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lab.compare.duel import Contender, duel
from lab.compare.line_up import LETTERS, line_up
from lab.config import RunConfig
from lab.recording import Recording
from lab.run import Run
from lab.shipped import write
from losslib.errors import ParameterError

FOLDER = Path(__file__).parent
BASE: dict[str, str] = {}
CONTENDERS = ({"loss": "ContrastiveLoss"}, {"loss": "NTXentLoss"})
FIRST_STEPS, TOLERANCE = 10, 1e-3


def configs() -> tuple[RunConfig, ...]:
    """What is compared."""
    return line_up(BASE, CONTENDERS)


def files() -> list[Path]:
    """The shipped run files, in order."""
    return [FOLDER / f"example_{letter.lower()}.npz" for letter, _ in zip(LETTERS, CONTENDERS, strict=False)]


@cache
def example() -> tuple[Contender, ...]:
    """Read once a process. Raises ParameterError when a file is missing or damaged."""
    found = []
    for file in files():
        recording = Recording.load(file)
        made = recording.provenance
        found.append(Contender(recording, str(made.get("state", "finished")), str(made.get("verdict", ""))))
    return tuple(found)


def make() -> None:
    """Train it and write the files."""
    for file, made in zip(files(), duel(configs()), strict=True):
        made.recording.provenance["example"] = True
        write(made.recording, file)


def staleness() -> str:
    """Why the shipped files are no longer what training gives, or ""."""
    try:
        shipped = example()
    except ParameterError as error:
        return str(error)
    for config, one in zip(configs(), shipped, strict=True):
        if one.recording.config != config:
            return "its settings changed since it was recorded"
        run = Run(config)
        while run.steps_done < FIRST_STEPS and not run.finished:
            run.step()
        now, then = run.recording.curves()["loss"], one.recording.curves()["loss"]
        for step, (new, old) in enumerate(zip(now, then, strict=False)):
            if abs(new - old) > TOLERANCE * max(1.0, abs(old)):
                return f"{config.loss}: loss {step} is now {new:g}, recorded is {old:g}"
    return ""
