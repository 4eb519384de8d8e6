"""Small runs that take a fraction of a second."""

from collections.abc import Callable
from typing import Any

import pytest

from lab.config import RunConfig
from lab.run import Run

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
