"""The sweep that the page opens with, shipped as its results: `python -m lab.sweep.example --make`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lab.run import Run
from lab.shipped import command
from lab.sweep.cell import train
from lab.sweep.plan import Plan
from lab.sweep.results import CellResult, load, save
from lab.sweep.values import suggested, variable_options
from losslib.errors import ParameterError

FILE = Path(__file__).with_name("example.npz")
LOSSES = ("ContrastiveLoss", "NTXentLoss")
BASE = {"data": "digits", "steps": "200"}
SEEDS = 2
FIRST_STEPS, TOLERANCE = 10, 1e-3


def plan() -> Plan:
    """What is swept."""
    vary: dict[str, tuple[str, ...]] = {"loss": LOSSES}
    for loss in LOSSES:
        name, param = next(iter(variable_options(loss).items()))
        vary[f"{loss}.{name}"] = suggested(param)
    return Plan.of(BASE, vary, range(SEEDS))


@cache
def example() -> tuple[CellResult, ...]:
    """Read once a process. Raises ParameterError when the file is missing or damaged."""
    return load(FILE)


def make() -> None:
    """Train it and write the file."""
    save([train(cell.config).result for cell in plan().cells], FILE)


def staleness() -> str:
    """Why the shipped results are no longer what training gives, or ""."""
    try:
        shipped = example()
    except ParameterError as error:
        return str(error)
    if [one.config for one in shipped] != [cell.config for cell in plan().cells]:
        return "its settings changed since it was recorded"
    for one in shipped[:: len(shipped) - 1]:
        run = Run(one.config)
        while run.steps_done < FIRST_STEPS and not run.finished:
            run.step()
        for new, old in zip(run.recording.curves()["loss"], one.curves["loss"], strict=False):
            if abs(new - old) > TOLERANCE * max(1.0, abs(old)):
                return f"{one.config.loss}: a loss of the first steps is now {new:g}, recorded is {old:g}"
    return ""


if __name__ == "__main__":
    raise SystemExit(command("lab.sweep.example", make, staleness))
