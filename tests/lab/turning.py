"""What the tests of scheduler and live runs share: a clock of their own and ways to turn the scheduler."""

import time
from collections.abc import Callable

from lab.config import RunConfig
from lab.live import LiveRun
from lab.run import Run
from lab.scheduler import Limits, Scheduler

Small = Callable[..., RunConfig]
Finished = Callable[[RunConfig], Run]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock, **limits: float) -> Scheduler:
    return Scheduler(Limits(**limits), clock)  # type: ignore[arg-type]


def opened(scheduler: Scheduler, config: RunConfig, owner: str = "") -> LiveRun:
    run = scheduler.open(config, owner)
    run.attach("viewer")
    scheduler.turn()
    return run


def turns(scheduler: Scheduler, count: int = 500) -> None:
    for _ in range(count):
        scheduler.turn()


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
