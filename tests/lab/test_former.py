"""A live run is continued from a frame, and its former self comes back as it was."""

import pytest

from lab.config import Event
from losslib.errors import ParameterError
from tests.lab.turning import made, opened, turns


@pytest.fixture
def played(clock, small):
    """A scheduler, and a run of it that was paused at step 40 of 60."""
    scheduler = made(clock)
    run = opened(scheduler, small(steps=60))
    run.play(until=40)
    turns(scheduler, 60)
    assert (run.state, run.step) == ("paused", 40)
    return scheduler, run


def told(run):
    return [(frame.step, frame.loss) for frame in run.recording.frames]


def test_it_goes_on_from_the_frame_with_the_knobs_as_they_are(played, finished):
    scheduler, run = played
    run.change("neg_margin", 0.4)
    former = told(run)
    run.continue_from(30, {"neg_margin": 0.4})
    assert (run.state, run.step) == ("preparing", 30)
    assert run.config.events == (Event(31, "neg_margin", 0.4),)
    turns(scheduler, 100)
    assert (run.state, run.step) == ("finished", 60)
    assert [step for step in told(run) if step[0] <= 30] == [step for step in former if step[0] <= 30]
    assert run.recording.equals(finished(run.config).recording)


def test_on_the_way_it_says_how_far_it_has_come(played, clock):
    scheduler, run = played
    said = []
    run.subscribe(lambda live: said.append(live.reason))
    scheduler.clock = lambda: clock.__setattr__("now", clock.now + 0.01) or clock.now
    run.continue_from(24, {})
    for _ in range(4):
        scheduler.turn()  # one step a slice, by this clock
    assert "On the way back to step 24: 2 of 24 steps made again." in said
    assert run.step == 24
    turns(scheduler, 60)
    assert run.reason == ""
    assert run.step > 24


def test_the_former_run_comes_back_with_all_its_frames(played):
    scheduler, run = played
    before, config = told(run), run.config
    assert not run.has_former
    run.continue_from(20, {"lr": 0.01})
    turns(scheduler, 100)
    assert told(run) != before
    run.bring_back()
    assert (run.state, run.step, run.config, run.has_former) == ("paused", 40, config, False)
    assert told(run) == before
    run.play()
    turns(scheduler, 60)
    assert (run.state, run.step) == ("finished", 60)
    assert told(run)[: len(before)] == before


def test_reset_can_be_taken_back_but_there_is_nothing_to_bring_back_at_step_0(clock, small):
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.reset(small(seed=3))
    turns(scheduler, 3)
    assert not run.has_former
    run.advance(2)
    turns(scheduler, 5)
    run.reset(small(dim=8))
    turns(scheduler, 3)
    assert (run.step, run.config.dim) == (0, 8)
    run.bring_back()
    assert (run.step, run.config.dim, run.config.seed, run.state) == (2, 2, 3, "paused")


def test_a_recording_is_continued_by_training_its_settings_up_to_there(clock, small, finished):
    whole = finished(small(events=(Event(9, "neg_margin", 0.2),)))
    scheduler = made(clock)
    run = scheduler.open(whole.config, recording=whole.recording)
    run.attach("viewer")
    scheduler.turn()
    assert run.state == "recorded"
    run.continue_from(6, {"neg_margin": 0.5})
    turns(scheduler, 40)
    assert (run.state, run.step, run.shown) == ("finished", 12, None)
    assert run.config.events == (Event(7, "neg_margin", 0.5),)
    assert run.recording.equals(finished(run.config).recording)
    run.bring_back()
    assert (run.state, run.step, run.shown) == ("recorded", 12, whole.recording)


def test_a_reset_on_the_way_wins(played, small):
    scheduler, run = played
    run.continue_from(30, {})
    run.reset(small(seed=9))
    turns(scheduler, 5)
    assert (run.state, run.step, run.config.seed) == ("ready", 0, 9)


def test_a_step_without_a_frame_and_the_last_one_are_refused(played):
    _, run = played
    with pytest.raises(ParameterError, match="no frame of step 31"):
        run.continue_from(31, {})
    with pytest.raises(ParameterError, match="no frame of step 0"):
        run.continue_from(0, {})
    assert run.step == 40
    assert not run.has_former


def test_what_is_kept_is_one_former_run(played, small):
    scheduler, run = played
    run.reset(small(seed=1))
    turns(scheduler, 3)
    run.advance(1)
    turns(scheduler, 5)
    run.reset(small(seed=2))
    turns(scheduler, 3)
    run.bring_back()
    assert (run.config.seed, run.has_former) == (1, False)
