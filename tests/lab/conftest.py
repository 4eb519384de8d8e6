"""Small runs that take a fraction of a second."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.config import RunConfig
from lab.run import Run
from lab.scheduler import Scheduler
from tests.lab.turning import Clock

SMALL = {"data": "blobs", "data_options": {"points": 400, "classes": 4}, "batch": 32, "steps": 12}


@pytest.fixture(scope="session")
def small() -> Callable[..., RunConfig]:
    def make(**changes: Any) -> RunConfig:
        return RunConfig(**{**SMALL, **changes})

    return make


@pytest.fixture(scope="session")
def finished() -> Callable[[RunConfig], Run]:
    def train(config: RunConfig) -> Run:
        run = Run(config)
        for _ in run:
            pass
        return run

    return train


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def worker() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start()
    yield scheduler
    scheduler.stop()
