"""Room for those who are there: what nobody has a page of gives way sooner, and its memory goes back."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.limits import LimitError, Limits, estimated_bytes
from lab.scheduler import Scheduler
from tests.lab.turning import Clock, Small, made, opened, until


@contextmanager
def running(scheduler: Scheduler) -> Iterator[None]:
    scheduler.start()
    try:
        yield
    finally:
        scheduler.stop()


def test_an_orphan_goes_sooner_while_somebody_waits(small: Small, clock: Clock) -> None:
    scheduler = made(clock, runs=1, queue=3, pause_after=9, drop_after=55)
    left = scheduler.open(small())
    left.orphan()
    clock.now += 20
    scheduler.turn()
    assert scheduler.get(left.token) is left, "nobody waits"

    waiting = scheduler.open(small(seed=1))
    assert waiting.state == "queued"
    clock.now += 0.1
    scheduler.turn()
    assert scheduler.get(left.token) is None
    assert waiting.state != "queued"


def test_an_orphan_that_waits_makes_no_other_go(small: Small, clock: Clock) -> None:
    scheduler = made(clock, runs=1, queue=3, pause_after=9, drop_after=55)
    first, second = scheduler.open(small()), scheduler.open(small(seed=1))
    first.orphan()
    second.orphan()
    clock.now += 20
    scheduler.turn()
    assert len(scheduler.runs) == 2


def test_a_full_server_lets_the_oldest_orphan_go_and_no_other(small: Small, clock: Clock) -> None:
    scheduler = made(clock, runs=1, queue=2)
    runs = [scheduler.open(small(seed=seed)) for seed in range(3)]
    with pytest.raises(LimitError, match="as many runs as it can hold"):
        scheduler.open(small(seed=3))
    runs[2].orphan()
    clock.now += 1
    runs[1].orphan()
    new = scheduler.open(small(seed=4))
    assert [run.token for run in scheduler.runs] == [runs[0].token, runs[1].token, new.token]
    assert "others waited" in runs[2].reason


def test_memory_of_dropped_runs_goes_back_now_and_then(
    small: Small, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []
    monkeypatch.setattr("lab.scheduler.give_back", lambda: times.append(clock.now))
    scheduler = made(clock)
    begun = clock.now
    for second in range(1, 61):
        scheduler.close(scheduler.open(small()).token)
        clock.now = begun + second
        scheduler.turn()
    assert times == [begun + 20, begun + 40, begun + 60]
    clock.now += 100
    scheduler.turn()
    assert len(times) == 3, "nothing was dropped since"
    scheduler.close(scheduler.open(small()).token)
    scheduler.turn()
    assert len(times) == 4


def test_a_run_that_asks_for_more_memory_takes_no_place_from_one_that_trains(
    small: Small, clock: Clock
) -> None:
    large = small(batch=200)
    scheduler = made(clock, memory=estimated_bytes(large) + estimated_bytes(small()) - 1)
    grows, trains = (opened(scheduler, small(seed=seed, steps=500)) for seed in range(2))
    trains.play()
    scheduler.turn()
    grows.reset(large)
    late = scheduler.open(small(seed=2))
    assert (grows.state, trains.state, late.state) == ("queued", "running", "queued")
    before = trains.step
    scheduler.turn()
    assert trains.step > before
    scheduler.close(trains.token)
    assert (grows.state, late.state) == ("preparing", "queued")


def test_a_run_that_asks_for_more_memory_keeps_its_place_while_all_fit(small: Small, clock: Clock) -> None:
    scheduler = made(clock, runs=1)
    grows, waits = (scheduler.open(small(seed=seed)) for seed in range(2))
    grows.reset(small(batch=200))
    assert (grows.state, waits.state) == ("preparing", "queued")


def test_frames_of_a_class_are_evenly_spread_whatever_a_run_costs(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    costs = [{}, {"dim": 64}, {"batch": 128}, {"encoder": "linear"}, {"loss": "NTXentLoss"}]
    runs = [opened(scheduler, small(steps=2000, **cost)) for cost in costs]
    for run in runs:
        run.play()
    for turn in range(1, 11):  # a frame falls on each of the first ten steps
        scheduler.turn()
        counts = [len(run.recording.frames) for run in runs if run.recording is not None]
        assert counts == [turn + 1] * len(runs)


def test_training_waits_for_answers(small: Small) -> None:
    asked = []

    def answering() -> bool:
        asked.append(run.step)
        return len(asked) % 3 != 0  # an answer takes two naps

    scheduler = Scheduler(Limits(slice_steps=1, quantum=0.5), answering=answering)
    run = scheduler.open(small(steps=40))
    with running(scheduler):
        run.attach("viewer")
        run.play()
        until(lambda: run.state == "finished")
    assert set(asked[1:]) >= set(range(1, 40)), "after every slice, while the run stands"


def test_an_answer_that_never_comes_stops_no_run(small: Small) -> None:
    scheduler = Scheduler(answering=lambda: True)
    with running(scheduler):
        run = scheduler.open(small(steps=30))
        run.attach("viewer")
        run.play()
        until(lambda: run.state == "finished")
    assert run.step == 30
