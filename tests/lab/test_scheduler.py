"""The scheduler: fairness, pacing, limits and grace, turned by hand with a clock of its own."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lab.limits import LimitError, Limits, estimated_bytes
from lab.live import UNWATCHED
from lab.scheduler import Scheduler, pause
from losslib.errors import ParameterError
from tests.lab.turning import Clock, Finished, Small, made, opened, turns, until

ROOT = Path(__file__).resolve().parents[2]


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


def test_duty_falls_from_0_95_to_0_75_with_the_number_of_busy_runs(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    runs = [scheduler.open(small(steps=500, seed=seed)) for seed in range(30)]
    expected = {1: 0.95, 2: 0.95, 16: 0.85, 30: 0.75}
    for busy in range(1, 31):
        runs[busy - 1].set_state("running")
        if busy in expected:
            assert scheduler.duty() == pytest.approx(expected[busy])


def test_what_a_slice_waited_for_others_it_has_rested() -> None:
    assert pause(0.006, 0.006, 0.75) == pytest.approx(0.002)  # 6 of 8 ms at work
    assert pause(0.007, 0.006, 0.75) == pytest.approx(0.001)
    assert pause(0.020, 0.006, 0.75) == 0
    assert pause(3.0, 3.0, 0.75) == 0.1  # never long


def test_nobody_watching_pauses_within_ten_seconds(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(steps=500))
    run.play()
    run.attach("second")
    run.detach("viewer")
    clock.now += 60
    scheduler.turn()
    assert run.state == "running"  # one still watches
    run.detach("second")
    clock.now += 8.9
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


def test_orphans_are_dropped_within_a_minute_unless_adopted(small: Small, clock: Clock) -> None:
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


def test_a_view_that_comes_back_without_its_session_does_not_keep_the_run_for_ever(
    small: Small, clock: Clock
) -> None:
    scheduler = made(clock)
    kept, left = (opened(scheduler, small(steps=500, seed=seed)) for seed in range(2))
    for run in (kept, left):
        run.orphan()  # a blip of the network
        run.attach("viewer")  # the view's own socket is back
    clock.now += 100
    scheduler.turn()
    assert scheduler.get(left.token) is left, "somebody watches"
    kept.adopt()  # the session's script has run again
    for run in (kept, left):
        run.detach("viewer")
    clock.now += 60
    scheduler.turn()
    assert scheduler.get(kept.token) is kept
    assert scheduler.get(left.token) is None


def test_a_closed_tab_is_paused_within_10_seconds_and_gone_within_60() -> None:
    limits = Limits()
    assert limits.pause_after + 0.5 <= 10  # the idle worker looks every half second
    assert limits.drop_after + 0.5 <= 60
    assert limits.runs == 32


def test_limits_come_from_the_environment() -> None:
    limits = Limits.from_environment(
        {"LOSSLAB_RUNS": "60", "LOSSLAB_DROP_AFTER": "2.5", "LOSSLAB_OTHER": "x"}
    )
    assert (limits.runs, limits.drop_after, limits.pause_after) == (60, 2.5, Limits().pause_after)
    for name, text, words in (
        ("LOSSLAB_RUNS", "2.5", "LOSSLAB_RUNS must be a whole number"),
        ("LOSSLAB_RUNS", "0", "LOSSLAB_RUNS must be a whole number"),
        ("LOSSLAB_PAUSE_AFTER", "never", "LOSSLAB_PAUSE_AFTER must be a number > 0"),
    ):
        with pytest.raises(ParameterError, match=words):
            Limits.from_environment({name: text})


def test_a_process_may_end_while_a_run_trains() -> None:
    """The worker is inside torch most of the time; ending the interpreter there must not abort it."""
    code = (
        "import time\n"
        "from lab.config import RunConfig\n"
        "from lab.scheduler import Scheduler\n"
        "scheduler = Scheduler()\n"
        "scheduler.start()\n"
        "run = scheduler.open(RunConfig(data='blobs', steps=20_000, batch=512))\n"
        "run.attach('someone')\n"
        "run.play()\n"
        "while run.step < 3:\n"
        "    time.sleep(0.01)\n"
        "print('training')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, cwd=ROOT
    )
    assert (done.stdout, done.stderr, done.returncode) == ("training\n", "", 0)
