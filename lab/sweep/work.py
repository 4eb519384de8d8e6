"""A plan as the tasks of a job, and what a job has of it so far."""

from __future__ import annotations

from functools import partial

from lab.sweep.cell import train
from lab.sweep.job import Job, Task
from lab.sweep.plan import Cell, Plan
from lab.sweep.results import CellResult, failed


def tasks_of(plan: Plan, with_file: bool = False) -> list[Task]:
    """One task a cell; its key is the config."""
    function = partial(train, with_file=True) if with_file else train
    return [Task(cell.config, function, cell.config, cell.config.steps) for cell in plan.cells]


def results_of(plan: Plan, job: Job) -> list[tuple[Cell, CellResult]]:
    """Cells that have ended, in the order of the plan."""
    done = []
    for cell in plan.cells:
        if cell.config in job.results:
            done.append((cell, job.results[cell.config].result))
        elif cell.config in job.failures:
            done.append((cell, failed(cell.config, job.failures[cell.config])))
    return done
