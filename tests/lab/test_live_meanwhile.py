"""What people ask of a run while its worker is in the middle of something."""

from collections.abc import Callable
from typing import Any

import pytest

import lab.live
from lab.live import LiveRun
from lab.run import Run
from losslib.errors import ParameterError
from tests.lab.turning import Clock, Small, made, opened, turns


def in_the_middle(run: LiveRun, *asked: Callable[[], Any]) -> list[tuple[str, int]]:
    """Ask something in the middle of the next step; what is told from then on, and at once, in the list."""
    inner, told = run._run, []
    assert inner is not None
    update = inner.trainer.update

    def meanwhile() -> None:
        inner.trainer.update = update  # type: ignore[method-assign]
        for ask in asked:
            ask()
        told.append((run.state, run.step))
        run.subscribe(lambda live: told.append((live.state, live.step)))
        update()

    inner.trainer.update = meanwhile  # type: ignore[method-assign]
    return told


def test_a_pause_in_the_middle_of_a_step_is_told_once_the_step_has_ended(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.play()
    told = in_the_middle(run, lambda: run.pause("Enough."))
    turns(scheduler, 4)
    assert told[0] == ("running", 0)
    assert {step for state, step in told if state == "paused"} == {1}, "paused means that it stands still"
    assert (run.state, run.step, run.reason) == ("paused", 1, "Enough.")


def test_play_in_the_same_step_takes_the_pause_back(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.play()
    told = in_the_middle(run, run.pause, run.play)
    turns(scheduler, 30)
    assert "paused" not in {state for state, _ in told}
    assert (run.state, run.step) == ("finished", 12)


def test_a_pause_after_an_error_in_the_middle_of_a_step_holds_at_once(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.play()

    def broken() -> None:
        raise RuntimeError

    in_the_middle(run, broken)
    scheduler.turn()
    assert run.state == "failed"
    run.reset()
    scheduler.turn()
    run.play()
    run.pause()
    assert run.state == "paused"


def test_the_failure_of_a_former_life_is_not_told_of_the_present_one(
    small: Small, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = made(clock)
    run = scheduler.open(small(seed=1))

    def corrected(config: object) -> None:
        monkeypatch.setattr(lab.live, "Run", Run)
        run.reset(small(seed=2))
        raise ParameterError("the former settings cannot be trained")

    monkeypatch.setattr(lab.live, "Run", corrected)
    scheduler.turn()
    assert (run.state, run.reason) == ("preparing", "")
    scheduler.turn()
    assert (run.state, run.config.seed) == ("ready", 2)


def test_the_failure_of_a_closed_run_leaves_it_closed(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.play()

    def closed() -> None:
        scheduler.close(run.token)
        raise RuntimeError

    in_the_middle(run, closed)
    scheduler.turn()
    assert (run.state, run.reason) == ("closed", "This run was closed.")


def test_a_run_put_aside_in_the_middle_of_a_step_comes_back_with_that_step(
    small: Small, clock: Clock
) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.advance(3)
    turns(scheduler, 5)
    run.play()
    in_the_middle(run, lambda: run.reset(small(seed=1)))
    turns(scheduler, 3)
    assert (run.state, run.step) == ("ready", 0)
    run.bring_back()
    assert (run.state, run.step) == ("paused", 4)
    run.advance()
    turns(scheduler, 3)
    assert run.step == 5
