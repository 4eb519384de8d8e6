"""Looks between frames: seldom enough, exact at rest, and without a trace in the recording."""

import dataclasses

import numpy as np
import pytest
import torch

from lab.frame import identical
from lab.glances import EVERY, SHARE, Glances
from lab.recording import is_frame_step
from lab.run import Run
from tests.lab.turning import Clock, Finished, Small, made, opened, turns

LOOKED_AT = [
    {"encoder": "mlp", "dim": 5},
    {"encoder": "free", "output": "none"},
    {"output": "batchnorm", "loss": "NTXentLoss"},
]


@pytest.mark.parametrize("settings", LOOKED_AT)
def test_the_recording_of_a_run_that_was_looked_at_is_the_same(
    settings: dict[str, object], small: Small, finished: Finished
) -> None:
    run = Run(small(steps=30, **settings))
    torch.manual_seed(5)
    before = torch.get_rng_state()
    for _ in run:
        assert run.glance() is not None
    assert torch.equal(torch.get_rng_state(), before)
    assert run.recording.equals(finished(small(steps=30, **settings)).recording)


def test_a_glance_shows_what_a_frame_of_that_step_would(small: Small) -> None:
    looked, asked = Run(small(steps=60, dim=4)), Run(small(steps=60, dim=4))
    for _ in range(23):
        looked.step()
    for _ in range(22):
        asked.step()
    frame, glance = asked.step(look=True), looked.glance()
    assert frame is not None
    assert glance is not None
    assert (frame.step, frame.extra, glance.step) == (23, True, 23)
    assert identical(glance.positions, frame.positions)
    assert identical(tuple(glance.histogram), tuple(frame.histogram))


def test_embeddings_that_are_not_finite_give_no_glance(small: Small) -> None:
    run = Run(small())
    run.start()
    with torch.no_grad():
        next(iter(run.trainer.encoder.parameters())).fill_(np.nan)
    assert run.glance() is None


class Stub:
    """A run of which only the number of steps counts; a look at it takes a second by the clock."""

    def __init__(self, clock: Clock) -> None:
        self.steps_done, self.looks, self.clock = 0, 0, clock
        self.recording = dataclasses.make_dataclass("R", ["latest"])(None)

    def glance(self) -> None:
        self.looks += 1
        self.clock.now += 1.0


@pytest.mark.parametrize("busy", [1, 3])
def test_looks_take_a_fixed_share_of_the_time(busy: int, clock: Clock) -> None:
    glances, stub = Glances(clock), Stub(clock)
    begun = clock.now
    while clock.now < begun + 1000:
        stub.steps_done += 1
        clock.now += 0.01
        glances.look(stub, False, busy)  # type: ignore[arg-type]
    assert stub.looks / (clock.now - begun) == pytest.approx(SHARE / busy, rel=0.05)


def test_a_run_at_rest_shows_its_very_last_step_and_is_left_alone(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=2000))
    run.play()
    while run.step < 200 or is_frame_step(run.step):
        scheduler.turn()  # time stands still, so no look is due
    run.pause()
    turns(scheduler, 3)
    assert run.recording is not None
    assert run.recording.frames[-1].step < run.step
    assert run.glances.newest is not None
    assert run.glances.newest.step == run.step
    assert not run.wants_work(clock.now)


def test_nobody_watches_nobody_looks(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=2000))
    run.detach("viewer")
    run.play()
    for _ in range(60):
        scheduler.turn()
        clock.now += EVERY
        run.sign_of_life()
    run.pause()
    turns(scheduler, 3)
    assert 0 < run.step < 2000
    assert run.glances.newest is None
    assert not run.wants_work(clock.now)


def test_reset_forgets_what_was_seen(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=2000))
    run.play()
    while run.glances.newest is None:
        scheduler.turn()
        clock.now += EVERY
    run.pause()
    turns(scheduler, 3)
    run.reset()
    turns(scheduler, 3)
    assert (run.step, run.glances.newest) == (0, None)
