"""A live run is continued from a frame, and its former self comes back as it was."""

import pytest

from lab.config import Event
from lab.shelf import Shelf
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
    assert run.formers == 0
    run.continue_from(20, {"lr": 0.01})
    turns(scheduler, 100)
    assert told(run) != before
    run.bring_back()
    assert (run.state, run.step, run.config, run.formers) == ("paused", 40, config, 0)
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
    assert run.formers == 0
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
    assert run.formers == 0


def test_several_former_runs_come_back_and_forward_again(played, small):
    scheduler, run = played
    whole = run.recording
    for seed in (1, 2):
        run.reset(small(seed=seed))
        turns(scheduler, 3)
        run.advance(seed)
        turns(scheduler, 5)
    assert (run.formers, run.laters) == (2, 0)
    run.bring_back()
    assert (run.config.seed, run.step, run.formers, run.laters) == (1, 1, 1, 1)
    run.bring_back()
    assert (run.config.seed, run.step, run.formers, run.laters) == (0, 40, 0, 2)
    assert run.recording is whole
    run.bring_back()  # there is nothing before it
    assert run.step == 40
    run.bring_forward()
    run.bring_forward()
    assert (run.config.seed, run.step, run.formers, run.laters) == (2, 2, 2, 0)
    run.play(until=5)
    turns(scheduler, 10)
    assert (run.state, run.step) == ("paused", 5), "what came forward trains on"
    run.bring_back()
    run.reset(small(seed=7))
    assert run.laters == 0, "another run ends what was later"
    assert run.formers == 2


def test_a_reset_that_was_taken_back_comes_forward_at_step_0(played, small):
    scheduler, run = played
    run.reset(small(seed=4))
    turns(scheduler, 3)
    run.bring_back()
    assert (run.step, run.laters) == (40, 1)
    run.bring_forward()
    assert (run.state, run.step, run.config.seed, run.formers) == ("ready", 0, 4, 1)


class Kept:
    def __init__(self, name, nbytes):
        self.name, self.nbytes = name, nbytes


def test_the_furthest_goes_when_there_is_no_room():
    shelf = Shelf(most=3, room=100)
    for name in "abcd":
        shelf.put(Kept(name, 10))
    assert [one.name for one in shelf.former] == ["b", "c", "d"]
    shelf.put(Kept("e", 95))
    assert [one.name for one in shelf.former] == ["e"]
    shelf.put(Kept("f", 500))
    assert [one.name for one in shelf.former] == ["f"], "one stays, whatever its size"
    assert shelf.back(Kept("g", 1)).name == "f"
    assert shelf.forward(None).name == "g"
    assert (shelf.former, shelf.later) == ([], []), "what was there cannot be had again"
