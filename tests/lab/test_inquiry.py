"""Live runs that are asked and go phase by phase, while others train."""

from typing import Any

import pytest

from lab import inquiry
from lab.asked import Question
from lab.run import Run
from tests.lab.turning import Clock, Small, made, opened, turns

WHY = Question("why", "map", 2)


def test_six_phases_make_a_step_and_play_finishes_one_under_way(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    for number in range(1, 7):
        run.phase()
        turns(scheduler, 2)
        assert run.phase_note is not None
        assert (run.phase_note["number"], run.phase_note["step"]) == (number, 1)
        assert (run.state, run.step) == ("paused", int(number == 6))
    run.phase()
    turns(scheduler, 2)
    assert (run.phase_note or {}).get("step") == 2
    run.advance()
    turns(scheduler, 2)
    assert (run.step, run.phase_note) == (2, None), "Step finishes the step that was begun"
    run.phase()
    turns(scheduler, 2)
    run.play()
    turns(scheduler, 30)
    assert (run.state, run.step, run.phase_note) == ("finished", 12, None)


def test_a_knob_turned_within_a_step_holds_from_the_next_one(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.phase()
    turns(scheduler, 2)
    run.change("neg_margin", 0.5)
    assert [(event.step, event.value) for event in run.config.events] == [(2, 0.5)]
    for _ in range(5):
        run.phase()
        turns(scheduler, 2)
    assert run.step == 1
    run.advance()
    turns(scheduler, 2)
    again = opened(scheduler, run.config)
    again.advance(2)
    turns(scheduler, 4)
    assert run.recording is not None
    assert again.recording is not None
    assert run.recording.latest is not None
    assert again.recording.latest is not None
    assert run.recording.latest.loss == again.recording.latest.loss


def test_a_phase_asked_for_before_the_run_is_ready_is_remembered(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = scheduler.open(small())
    run.phase()
    turns(scheduler, 2)
    assert (run.state, run.step) == ("paused", 0)
    assert run.phase_note is not None
    assert run.phase_note["name"] == "sample"


def test_reset_forgets_a_step_under_way(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.phase()
    run.phase()
    turns(scheduler, 3)
    run.reset()
    turns(scheduler, 2)
    assert (run.state, run.step, run.phase_note) == ("ready", 0, None)


def test_the_worker_answers_each_viewer_and_keeps_the_answer_of_a_step(
    small: Small, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Question] = []
    real = inquiry.answer

    def counted(run: Run, question: Question) -> dict[str, Any]:
        asked.append(question)
        return real(run, question)

    monkeypatch.setattr(inquiry, "answer", counted)
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.ask("one", WHY)
    assert run.answers("one") == {}, "asking works nothing out"
    turns(scheduler, 1)
    run.ask("two", WHY)
    run.ask("one", Question("batch"))
    turns(scheduler, 3)
    assert run.answers("one")["why"][1] == run.answers("two")["why"][1]
    assert set(run.answers("one")) == {"why", "batch"}
    assert run.answers("one")["batch"][0] > run.answers("one")["why"][0]
    assert asked == [WHY, Question("batch")], "the second viewer was told the same without working it out"
    run.advance()
    turns(scheduler, 2)
    run.ask("one", WHY)
    turns(scheduler, 2)
    assert run.answers("one")["why"][1]["step"] == 1
    run.detach("one")
    assert run.answers("one") == {}
    assert "why" in run.answers("two")


def test_questions_change_neither_what_is_trained_nor_how_fast(small: Small, clock: Clock) -> None:
    scheduler = made(clock)
    asked, quiet = opened(scheduler, small(steps=8)), opened(scheduler, small(steps=8))
    for run in (asked, quiet):
        run.speed = 1.0
        run.play()
    for second in range(12):
        for point in range(4):
            asked.ask("viewer", Question("why", "map", point))
            turns(scheduler, 2)
            assert asked.step == quiet.step == min(second + 1, 8)
        clock.now += 1.0
    assert asked.recording is not None
    assert quiet.recording is not None
    assert asked.recording.equals(quiet.recording)


def test_while_it_trains_answers_take_a_small_share_of_the_time(
    small: Small, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object) -> dict[str, object]:
        clock.now += 3.0
        return {"partners": []}

    monkeypatch.setattr(inquiry, "answer", slow)
    scheduler = made(clock)
    run = opened(scheduler, small(steps=1000))
    run.speed = 1.0
    run.play()
    answered = 0
    for _ in range(300):
        run.ask("viewer", WHY)
        turns(scheduler, 1)
        clock.now += 0.2
        answered = max([answered, *(number for number, _ in run.answers("viewer").values())])
    assert 2 <= answered <= 5, "3 s each, of which 20 s may follow"
    run.pause()
    for point in range(3):
        run.ask("viewer", Question("why", "map", point))
        turns(scheduler, 1)
    assert run.answers("viewer")["why"][0] == answered + 3, "at rest each is answered at once"


def test_a_question_that_cannot_be_answered_does_not_end_the_run(
    small: Small, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(inquiry, "answer", explode)
    monkeypatch.setattr(inquiry, "phase_note", explode)
    scheduler = made(clock)
    run = opened(scheduler, small())
    run.ask("one", WHY)
    run.phase()
    turns(scheduler, 2)
    told = run.answers("one")["why"][1]
    assert told["partners"] == []
    assert told["reason"].startswith("This could not be worked out for this loss")
    assert run.phase_note is not None
    assert "secret" not in str(run.phase_note)
    run.play()
    turns(scheduler, 30)
    assert run.state == "finished"
