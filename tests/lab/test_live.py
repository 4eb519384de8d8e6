"""Live runs: their states, what people ask of them, and what happens when something breaks."""

import logging

import pytest

from lab.config import Event
from lab.live import LiveRun
from lab.scheduler import Scheduler
from losslib.errors import ParameterError
from tests.lab.turning import Clock, Finished, Small, made, opened, turns, until


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


def test_play_until_a_step_pauses_there_with_a_frame_and_says_so(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = scheduler.open(small(steps=60))
    run.play(until=23)
    turns(scheduler, 60)
    assert (run.state, run.step) == ("paused", 23)
    assert run.reason == "Paused at step 23, which the link shows; Play goes on."
    assert run.recording is not None
    assert run.recording.latest is not None
    assert (run.recording.latest.step, run.recording.latest.extra) == (23, True)
    run.play()
    turns(scheduler, 60)
    assert (run.state, run.step) == ("finished", 60)


def test_pause_and_reset_forget_the_step_to_pause_at(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    for interrupt in ("pause", "reset"):
        run = opened(scheduler, small())
        run.play(until=6)
        getattr(run, interrupt)()
        scheduler.turn()
        run.play()
        turns(scheduler, 40)
        assert (run.state, run.step) == ("finished", 12)


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


def test_what_cannot_be_prepared_fails_with_its_sentence_and_reset_mends_it(
    small: Small, clock: Clock
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small(batch=201))
    assert run.state == "failed"
    assert run.reason == (
        "batch must be at most the 200 training points there are, got 201; "
        "choose a batch of at most 200, or data with more points."
    )
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
    assert caplog.text.count("a subscriber of LiveRun") == 1
    leave()
    count = len(heard)
    run.reset()
    scheduler.turn()
    assert len(heard) == count


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


def test_a_recording_is_shown_until_play_trains_it_live(
    small: Small, clock: Clock, finished: Finished
) -> None:
    recording = finished(small()).recording
    scheduler = made(clock)
    run = scheduler.open(small(), recording=recording)
    scheduler.turn()
    assert (run.state, run.step) == ("recorded", 12)
    assert run.recording is recording
    assert run.data is not None
    assert run.data.labels[recording.probe].tolist() == recording.labels.tolist()
    run.attach("viewer")
    turns(scheduler, 5)
    assert (run.state, run.step) == ("recorded", 12)  # nothing trains
    run.play()
    scheduler.turn()
    assert (run.state, run.shown) == ("running", None)
    turns(scheduler, 30)
    assert (run.state, run.step) == ("finished", 12)
    assert run.recording is not recording
    assert run.recording is not None
    assert run.recording.equals(recording)


def test_a_recording_takes_what_is_intended_at_its_first_step(
    small: Small, clock: Clock, finished: Finished
) -> None:
    recording = finished(small()).recording
    scheduler = made(clock)
    run = scheduler.open(small(), recording=recording)
    run.attach("viewer")
    scheduler.turn()
    run.intend(small(lr=0.5, steps=7))
    scheduler.turn()
    assert (run.state, run.total) == ("recorded", 12)  # the picture stays
    run.advance()
    turns(scheduler, 3)
    assert (run.state, run.step, run.total) == ("paused", 1, 7)
    assert run.recording is not None
    assert run.recording.frames[-1].learning_rate == 0.5


def test_recordings_take_no_place_and_queue_once_they_train(
    small: Small, clock: Clock, finished: Finished
) -> None:
    recording = finished(small()).recording
    scheduler = made(clock, runs=1)
    shown = [scheduler.open(small(), recording=recording) for _ in range(3)]
    live = opened(scheduler, small())
    assert [run.state for run in shown] == ["recorded"] * 3
    assert live.state == "ready"
    shown[0].play()
    scheduler.turn()
    assert (shown[0].state, live.state) == ("queued", "ready")
    assert "it is next" in shown[0].reason
    live.reset(recording=recording)
    turns(scheduler, 3)
    assert (shown[0].state, live.state) == ("running", "recorded")
