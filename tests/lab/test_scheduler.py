"""The scheduler: states, fairness, pacing, limits, grace and what happens when something breaks.

Most tests turn it by hand with a clock of their own; a few run the worker thread.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from lab.config import Event, RunConfig
from lab.live import UNWATCHED, LiveRun
from lab.run import Run
from lab.scheduler import LimitError, Limits, Scheduler, estimated_bytes
from losslib.errors import ParameterError

Small = Callable[..., RunConfig]
Finished = Callable[[RunConfig], Run]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


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


@pytest.fixture
def worker() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start()
    yield scheduler
    scheduler.stop()


def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def test_a_run_goes_from_preparing_to_finished(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = scheduler.open(small())
    assert (run.state, run.step, run.recording) == ("preparing", 0, None)
    scheduler.turn()
    assert run.state == "ready"
    assert run.recording is not None
    assert [frame.step for frame in run.recording.frames] == [0]
    assert run.data is not None
    assert run.probe is not None
    assert run.data.labels[run.probe].tolist() == run.recording.labels.tolist()
    run.attach("viewer")
    turns(scheduler, 5)
    assert run.step == 0  # ready, not running
    run.play()
    turns(scheduler, 30)
    assert (run.state, run.step) == ("finished", 12)


def test_play_before_it_is_ready_is_remembered(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = scheduler.open(small())
    run.play()
    scheduler.turn()
    assert run.state == "running"


def test_advance_makes_exactly_so_many_steps_and_shows_the_last(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=60))
    run.advance(22)
    turns(scheduler, 40)
    assert (run.state, run.step) == ("paused", 22)
    run.advance()
    turns(scheduler, 3)
    assert run.recording is not None
    latest = run.recording.latest
    assert latest is not None
    assert (run.step, latest.step, latest.extra) == (23, 23, True)


def test_pause_stops_and_play_goes_on(small: Small, clock: Clock, finished: Finished) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=30))
    run.play()
    turns(scheduler, 3)
    run.pause()
    step = run.step
    assert 0 < step < 30
    turns(scheduler, 3)
    assert (run.state, run.step) == ("paused", step)
    run.play()
    turns(scheduler, 60)
    assert run.recording is not None
    assert run.recording.equals(finished(small(steps=30)).recording)


def test_changes_are_events_at_the_next_step_and_replay(
    small: Small, clock: Clock, finished: Finished
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=20))
    run.advance(5)
    turns(scheduler, 8)
    run.change("neg_margin", 0.9)
    run.change("neg_margin", 0.5)
    assert run.config.events == (Event(6, "neg_margin", 0.5),)
    scheduler.turn()
    assert [m.value for m in run.marks if m.side == "negative"] == [0.5]  # seen before the next frame
    run.change("neg_margin", 0.5)
    assert len(run.config.events) == 1  # the value in force is no change
    with pytest.raises(ParameterError, match="neg_margin must be a finite number"):
        run.change("neg_margin", float("inf"))
    run.play()
    turns(scheduler, 40)
    assert run.recording is not None
    assert run.recording.equals(finished(run.config).recording)
    run.reset()
    assert run.config == small(steps=20, loss_options={"neg_margin": 0.5})
    turns(scheduler, 2)
    assert (run.state, run.step) == ("ready", 0)


def test_reset_repeats_the_run_and_may_take_another_config(
    small: Small, clock: Clock, finished: Finished
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.play()
    turns(scheduler, 30)
    first = run.recording
    run.reset()
    assert (run.state, run.step) == ("preparing", 0)
    run.play()
    turns(scheduler, 30)
    assert run.recording is not None
    assert first is not None
    assert run.recording is not first
    assert run.recording.equals(first)
    run.reset(small(data="moons", data_options={"points": 200}, seed=7))
    turns(scheduler, 2)
    assert run.data is not None
    assert (run.state, run.data.name, run.config.seed) == ("ready", "moons", 7)


def test_extending_a_finished_run_equals_a_longer_one(small: Small, clock: Clock, finished: Finished) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=23))
    run.play()
    turns(scheduler, 60)
    assert run.state == "finished"
    run.extend(8)
    assert (run.state, run.total, run.config.steps) == ("paused", 31, 31)
    run.play()
    turns(scheduler, 60)
    assert (run.state, run.step) == ("finished", 31)
    assert run.recording is not None
    assert run.recording.equals(finished(small(steps=31)).recording)


def test_two_runs_in_turn_equal_each_alone(small: Small, clock: Clock, finished: Finished) -> None:
    scheduler = made(clock)
    configs = (
        small(loss="MarginLoss", loss_options={"triplets_per_anchor": 2}, steps=25),
        small(seed=3, encoder="linear", steps=25),
    )
    runs = [opened(scheduler, config) for config in configs]
    for run in runs:
        run.play()
    turns(scheduler, 60)
    for run, config in zip(runs, configs, strict=True):
        assert run.recording is not None
        assert run.recording.equals(finished(config).recording)


def test_every_run_gets_its_slice_in_every_turn(small: Small, clock: Clock) -> None:
    scheduler = made(clock, slice_steps=3)
    runs = [opened(scheduler, small(steps=2000, seed=seed)) for seed in range(5)]
    for run in runs:
        run.play()
    for _ in range(30):
        before = [run.step for run in runs]
        scheduler.turn()
        made_steps = [run.step - b for run, b in zip(runs, before, strict=True)]
        assert all(1 <= steps <= 3 for steps in made_steps)
    assert max(run.step for run in runs) - min(run.step for run in runs) == 0


def test_speed_is_steps_a_second_and_changes_no_result(
    small: Small, clock: Clock, finished: Finished
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=40))
    run.speed = 10.0
    run.play()
    for _ in range(200):
        clock.now += 0.01
        scheduler.turn()
    assert 18 <= run.step <= 22  # two seconds at ten steps a second
    run.speed = None
    turns(scheduler, 60)
    assert run.state == "finished"
    assert run.recording is not None
    assert run.recording.equals(finished(small(steps=40)).recording)
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="steps a second > 0"):
            run.speed = bad


def test_duty_falls_from_0_95_to_0_6_with_the_number_of_busy_runs(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    runs = [scheduler.open(small(steps=500, seed=seed)) for seed in range(30)]
    expected = {1: 0.95, 2: 0.95, 16: 0.775, 30: 0.6}
    for busy in range(1, 31):
        runs[busy - 1].set_state("running")
        if busy in expected:
            assert scheduler.duty() == pytest.approx(expected[busy])


def test_nobody_watching_pauses_after_ten_seconds(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=500))
    run.play()
    run.attach("second")
    run.detach("viewer")
    clock.now += 60
    scheduler.turn()
    assert run.state == "running"  # one still watches
    run.detach("second")
    clock.now += 9.9
    scheduler.turn()
    assert run.state == "running"
    clock.now += 0.2
    scheduler.turn()
    assert (run.state, run.reason) == ("paused", UNWATCHED)
    clock.now += 500
    scheduler.turn()
    assert scheduler.get(run.token) is run  # its session lives
    run.attach("back")
    run.play()
    scheduler.turn()
    assert (run.state, run.reason) == ("running", "")


def test_asking_for_a_step_is_a_sign_of_life(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = scheduler.open(small(steps=500))
    scheduler.turn()
    clock.now += 100
    scheduler.turn()
    run.advance(2)
    turns(scheduler, 4)
    assert (run.state, run.step) == ("paused", 2)
    clock.now += 100
    run.play()
    scheduler.turn()
    assert run.state == "running"
    clock.now += 10.1
    scheduler.turn()
    assert (run.state, run.reason) == ("paused", UNWATCHED)


def test_orphans_are_dropped_after_a_minute_unless_adopted(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    kept, dropped = (opened(scheduler, small(steps=500, seed=seed)) for seed in range(2))
    for run in (kept, dropped):
        run.play()
        run.orphan()
    clock.now += 10.1
    scheduler.turn()
    assert (kept.state, dropped.state) == ("paused", "paused")
    clock.now += 40
    kept.attach("a reloaded page")
    clock.now += 10
    scheduler.turn()
    assert scheduler.get(kept.token) is kept
    assert scheduler.get(dropped.token) is None
    assert dropped.state == "closed"
    assert "its page was closed" in dropped.reason
    dropped.play()
    dropped.advance()
    dropped.reset()
    turns(scheduler, 2)
    assert dropped.state == "closed"


def test_runs_beyond_the_limit_wait_and_know_their_place(small: Small, clock: Clock) -> None:
    scheduler = made(clock, runs=2, queue=2)
    first, second, third, fourth = (scheduler.open(small(seed=seed)) for seed in range(4))
    assert (first.state, second.state) == ("preparing", "preparing")
    assert (third.state, fourth.state) == ("queued", "queued")
    assert "it is next" in third.reason
    assert "1 are ahead of it" in fourth.reason
    fourth.play()
    turns(scheduler, 3)
    assert (third.state, fourth.state) == ("queued", "queued")
    with pytest.raises(LimitError, match="as many runs as it can hold"):
        scheduler.open(small(seed=9))
    scheduler.close(first.token)
    assert (third.state, third.reason) == ("preparing", "")
    assert "it is next" in fourth.reason
    scheduler.close(second.token)
    scheduler.turn()
    assert (third.state, fourth.state) == ("ready", "running")


def test_limits_are_one_sentence(small: Small, clock: Clock) -> None:
    scheduler = made(clock, steps=100, points=1000, batch=64, runs_per_owner=2)
    for config, words in (
        (small(steps=101), "at most 100 for steps, got 101"),
        (small(data_options={"points": 1001}), "at most 1000 for points, got 1001"),
        (small(batch=65), "at most 64 for batch, got 65"),
    ):
        with pytest.raises(LimitError, match=words):
            scheduler.open(config)
    run = scheduler.open(small(), owner="ann")
    scheduler.open(small(), owner="ann")
    scheduler.open(small(), owner="bob")
    with pytest.raises(LimitError, match="you have 2 runs already"):
        scheduler.open(small(), owner="ann")
    with pytest.raises(LimitError, match="at most 100 for steps"):
        run.extend(100)
    with pytest.raises(LimitError, match="at most 64 for batch"):
        run.reset(small(batch=65))
    assert run.config == small()
    tight = made(clock, memory=estimated_bytes(small()) - 1)
    with pytest.raises(LimitError, match="more memory than this server allows"):
        tight.open(small())


def test_memory_of_all_runs_together_makes_the_next_one_wait(small: Small, clock: Clock) -> None:
    scheduler = made(clock, memory=int(2.5 * estimated_bytes(small())))
    runs = [scheduler.open(small(seed=seed)) for seed in range(3)]
    assert [run.state for run in runs] == ["preparing", "preparing", "queued"]


def test_what_cannot_be_prepared_fails_with_its_sentence_and_reset_mends_it(
    small: Small, clock: Clock
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(batch=201))
    assert run.state == "failed"
    assert run.reason == "run: batch must be at most the 200 training points there are, got 201"
    run.play()
    assert run.state == "failed"
    run.reset(small())
    scheduler.turn()
    assert (run.state, run.reason) == ("ready", "")


def test_divergence_is_a_state_with_its_reason(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(lr=1e20, output="none", optimizer="sgd", steps=100))
    run.play()
    turns(scheduler, 120)
    assert run.state == "diverged"
    assert "lower the learning rate" in run.reason
    assert run.recording is not None
    assert (run.recording.state, run.recording.reason) == ("diverged", run.reason)


def test_an_error_of_the_program_stops_one_run_and_not_the_others(
    small: Small, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = made(clock)
    broken, healthy = (opened(scheduler, small(seed=seed)) for seed in range(2))
    assert broken._run is not None

    def explode(*_: object) -> None:
        raise RuntimeError("secret detail")

    broken._run.trainer.update = explode  # type: ignore[method-assign, assignment]
    broken.play()
    healthy.play()
    with caplog.at_level(logging.ERROR):
        turns(scheduler, 30)
    assert (broken.state, healthy.state) == ("failed", "finished")
    assert "secret" not in broken.reason
    number = broken.reason.split("number ")[1][:6]
    assert number in caplog.text
    assert "secret detail" in caplog.text  # the log keeps the traceback under the number
    broken.reset()
    scheduler.turn()
    assert broken.state == "ready"


def test_subscribers_hear_of_frames_and_states_and_a_broken_one_is_left_out(
    small: Small, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = made(clock)
    run = scheduler.open(small())
    heard: list[tuple[str, int]] = []
    versions: list[int] = []

    def listen(live: LiveRun) -> None:
        heard.append((live.state, live.step))
        versions.append(live.version)

    leave = run.subscribe(listen)
    run.subscribe(lambda live: 1 / 0)  # type: ignore[arg-type, return-value]
    run.attach("viewer")
    scheduler.turn()
    run.play()
    turns(scheduler, 30)
    assert ("ready", 0) in heard
    assert heard[-1] == ("finished", 12)
    assert {step for _, step in heard} >= {*range(11), 12}  # every frame is told
    assert versions == sorted(set(versions))
    assert caplog.text.count("a subscriber of run") == 1
    leave()
    count = len(heard)
    run.reset()
    scheduler.turn()
    assert len(heard) == count


def test_the_worker_trains_while_others_ask(small: Small, worker: Scheduler, finished: Finished) -> None:
    runs = [worker.open(small(steps=60, seed=seed)) for seed in range(3)]
    for run in runs:
        run.attach("viewer")
        run.play()
    until(lambda: runs[0].step > 5)
    runs[0].change("neg_margin", 0.6)
    runs[1].pause()
    until(lambda: runs[0].state == runs[2].state == "finished")
    assert runs[1].state == "paused"
    runs[1].play()
    until(lambda: runs[1].state == "finished")
    for run in runs:
        assert run.recording is not None
        assert run.recording.equals(finished(run.config).recording)
    assert len(runs[0].config.events) == 1


def test_reset_in_the_middle_of_a_slice_leaves_nothing_of_the_old_run(
    small: Small, worker: Scheduler, finished: Finished
) -> None:
    run = worker.open(small(steps=5000))
    run.attach("viewer")
    for seed in range(1, 6):
        run.reset(small(steps=5000, seed=seed))
        run.play()
        until(lambda: run.step > 3)
    run.reset(small(seed=9))
    run.play()
    until(lambda: run.state == "finished")
    assert run.recording is not None
    assert run.recording.equals(finished(small(seed=9)).recording)


def test_stop_joins_and_start_goes_on(small: Small) -> None:
    scheduler = Scheduler()
    scheduler.start()
    scheduler.start()
    workers = [t for t in threading.enumerate() if t.name == "lab-scheduler"]
    assert len(workers) == 1
    assert workers[0].daemon
    run = scheduler.open(small(steps=3000))
    run.attach("viewer")
    run.play()
    until(lambda: run.step > 2)
    scheduler.stop()
    assert not workers[0].is_alive()
    step = run.step
    time.sleep(0.05)
    assert run.step == step
    scheduler.start()
    until(lambda: run.step > step)
    scheduler.stop()


def test_tokens_are_long_and_closing_an_unknown_one_is_no_error(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    tokens = {scheduler.open(small()).token for _ in range(5)}
    assert len(tokens) == 5
    assert all(len(token) >= 20 for token in tokens)
    scheduler.close("nobody")
    assert scheduler.get("nobody") is None
