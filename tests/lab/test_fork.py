"""Continuing a run from one of its frames: bit for bit the whole run where nothing is changed."""

import numpy as np
import pytest

from lab.checkpoints import FIRST_SPACING, MOST, Checkpoints
from lab.config import Event, in_force
from lab.fork import Fork, beginning, forked, is_whole
from lab.run import Run


def trained(config, checkpoints=None):
    run = Run(config)
    run.start()
    while not run.finished:
        run.step()
        if checkpoints is not None:
            checkpoints.look(run)
    return run


def arrive(fork):
    while not fork.arrived:
        fork.advance()
    return fork.run


def on(run):
    while not run.finished:
        run.step()
    return run


EVENTS = (Event(5, "neg_margin", 0.7), Event(20, "lr", 0.01), Event(55, "neg_margin", 0.4))
KINDS = {
    "contrastive": {"events": EVENTS},
    "learned beta": {"loss": "MarginLoss", "loss_options": {"learn_beta": True}},
    "two views, batchnorm": {"pairing": "views", "output": "batchnorm", "loss": "NTXentLoss"},
    "free points, sgd": {"encoder": "free", "optimizer": "sgd", "lr": 0.03},
    "proxies": {"loss": "ProxyAnchorLoss", "optimizer": "adamw", "dim": 3},
    "random triplets": {"loss": "TripletMarginLoss", "loss_options": {"triplets_per_anchor": 3}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_continued_unchanged_it_equals_the_whole_run(kind, small):
    config = small(steps=55, **KINDS[kind])
    checkpoints = Checkpoints()
    whole = trained(config, checkpoints)
    assert [one.step for one in checkpoints.kept] == [25, 50]
    for step, first in ((45, 25), (10, 0)):
        fork = Fork(config, step, whole.recording, checkpoints.before(step))
        assert fork.first == first
        run = on(arrive(fork))
        assert run.recording.equals(whole.recording)


def test_without_the_former_recording_every_frame_is_made_again(small):
    config = small(steps=12)
    whole = trained(config)
    run = on(arrive(Fork(config, 6)))
    assert run.recording.equals(whole.recording)


def test_changed_knobs_hold_from_the_next_step_and_later_changes_are_dropped(small):
    config = small(steps=40, events=(Event(5, "neg_margin", 0.7), Event(30, "neg_margin", 0.2)))
    other = forked(config, 20, {"neg_margin": 1.5, "lr": config.lr})
    assert other.events == (Event(5, "neg_margin", 0.7), Event(21, "neg_margin", 1.5))
    whole, checkpoints = None, Checkpoints()
    whole = trained(config, checkpoints)
    run = on(arrive(Fork(other, 20, whole.recording, checkpoints.before(20))))
    assert run.recording.equals(trained(other).recording), "as if it had been turned on the first way"
    before, after = (r.recording.curves() for r in (whole, run))
    same = before["step"] <= 20
    assert np.array_equal(before["loss"][same], after["loss"][: same.sum()])
    assert before["loss"][-1] != after["loss"][-1]
    assert run.recording.latest.marks[1].value == 1.5


def test_a_knob_back_at_its_value_is_no_change(small):
    config = small(events=(Event(5, "neg_margin", 0.7),))
    assert forked(config, 8, {"neg_margin": 0.7}).events == config.events
    assert forked(config, 4, {"neg_margin": 1.0}).events == ()
    assert in_force(forked(config, 8, {"neg_margin": 1.0}))["neg_margin"] == 1.0


def test_a_change_taken_back_before_the_next_step_leaves_no_trace(small):
    run = Run(small())
    run.start()
    run.change("neg_margin", 0.3)
    assert run.marks[1].value == 0.3
    run.change("neg_margin", 1.0)
    assert run.config.events == ()
    assert run.marks[1].value == 1.0
    assert on(run).recording.equals(trained(small()).recording)


def test_checkpoints_are_few_evenly_spaced_and_within_their_room(small):
    config = small(steps=300, data_options={"points": 100, "classes": 2}, batch=8, per_class=4)
    checkpoints, tight = Checkpoints(), None
    run = Run(config)
    run.start()
    while run.steps_done < 230:
        run.retrace()
        checkpoints.look(run)
        if tight is None and checkpoints.kept:
            tight = Checkpoints(room=3 * checkpoints.kept[0].nbytes)
        if tight is not None:
            tight.look(run)
    assert [one.step for one in checkpoints.kept] == [50, 100, 150, 200]
    assert len(tight.kept) <= 3
    assert MOST * FIRST_SPACING == 200, "the ninth, at step 225, doubles the spacing"
    assert checkpoints.before(50) is None, "strictly before, so that a step can be asked about"
    assert checkpoints.before(101).step == 100
    assert [one.step for one in checkpoints.until(120).kept] == [50, 100]


def test_where_the_last_regular_frame_was_dropped_the_recording_is_not_taken_over(small):
    run = trained(small(steps=12))
    assert is_whole(run.recording, 7)
    run.recording.frames = [frame for frame in run.recording.frames if frame.step != 7]
    assert not is_whole(run.recording, 7)
    kept = beginning(run.recording, run.config, 8)
    assert [frame.step for frame in kept.frames] == [0, 1, 2, 3, 4, 5, 6, 8]
    assert kept.curves()["step"].tolist() == list(range(9))
