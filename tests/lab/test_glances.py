"""Looks between frames: seldom enough, exact at rest, and without a trace in the recording."""

import dataclasses

import numpy as np
import pytest
import torch

from lab.frame import identical
from lab.glances import EVERY, MOST, SELDOM, SHARE, Glances, interval
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
    """A run of which only the number of steps counts; a look at it takes some seconds by the clock."""

    def __init__(self, clock: Clock, cost: float) -> None:
        self.steps_done, self.looks, self.clock, self.cost = 0, 0, clock, cost
        self.recording = dataclasses.make_dataclass("R", ["latest"])(None)

    def glance(self) -> None:
        self.looks += 1
        self.clock.now += self.cost


@pytest.mark.parametrize(
    ("cost", "busy", "share"),
    [
        (0.02, 1, SHARE),
        (0.02, 5, SHARE / 5),
        (0.02, 20, 0.02 / SELDOM),  # once in that time, which is more than the share
        (0.02, 100, MOST / 100),  # that would be too much
    ],
)
def test_looks_take_a_fixed_share_of_the_time_unless_that_is_too_seldom(
    cost: float, busy: int, share: float, clock: Clock
) -> None:
    glances, stub = Glances(clock), Stub(clock, cost)
    begun = clock.now
    while clock.now < begun + 400:
        stub.steps_done += 1
        clock.now += 0.001
        glances.look(stub, False, busy * cost)  # type: ignore[arg-type]
    assert stub.looks * cost / (clock.now - begun) == pytest.approx(share, rel=0.05)


def test_a_dear_run_among_cheap_ones_is_looked_at_as_often_as_they(clock: Clock) -> None:
    costs = [0.024] * 10 + [0.008] * 20
    class_of_thirty = [(Glances(clock), Stub(clock, cost)) for cost in costs]
    begun = clock.now
    while clock.now < begun + 60:
        for glances, stub in class_of_thirty:
            stub.steps_done += 1
            clock.now += 0.001
            round_cost = sum(one.cost for one, _ in class_of_thirty)
            glances.look(stub, False, round_cost)  # type: ignore[arg-type]
    looks = [stub.looks for _, stub in class_of_thirty]
    assert max(looks) - min(looks) <= 1
    assert min(looks) >= 60 / (SELDOM + 0.5)


def test_a_frame_puts_the_next_look_off_as_a_look_does(clock: Clock) -> None:
    glances, stub = Glances(clock), Stub(clock, 0.02)
    stub.steps_done = 1
    glances.look(stub, False, 20 * 0.02)  # type: ignore[arg-type]
    stub.steps_done = 2
    stub.recording.latest = dataclasses.make_dataclass("F", ["step"])(2)  # type: ignore[attr-defined]
    clock.now += interval(20 * 0.02)
    glances.look(stub, False, 20 * 0.02)  # type: ignore[arg-type]
    framed = clock.now
    stub.steps_done, looks = 3, stub.looks
    while stub.looks == looks:
        clock.now += 0.001
        glances.look(stub, False, 20 * 0.02)  # type: ignore[arg-type]
    assert clock.now - 0.02 - framed == pytest.approx(SELDOM, abs=0.002)


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
