"""The Learn page: no answer before a prediction, the mark from the run, cures, lesson links, rooms."""

import json
import time

import pytest

from lab.lessons import get, lessons
from lab.lessons.failures import failures
from tests.ui.opening import button, component, opened_at, runs_closed, said
from ui.learn.question import capital
from ui.learn.room import rooms
from ui.server import scheduler


@pytest.fixture
def opened():
    with runs_closed():
        yield lambda **query: opened_at("learn", {key.replace("_", ".", 1): query[key] for key in query})


def until(at, condition, what):
    """Runs the script again, as the page's own timer does, until the condition holds."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert not at.exception
        if condition(at):
            return at
        time.sleep(0.1)
        at.run()
    raise AssertionError(f"waited for {what}: {said(at)}")


def test_the_page_lists_every_lesson_and_failure(opened):
    at = opened(learn_done="beta.temperature")
    labels = [one.label for one in at.button]
    for number, lesson in enumerate(lessons(), 1):
        done = ", done" if lesson.name in ("beta", "temperature") else ""
        assert f"{number}. {lesson.title}{done}" in labels
    assert "Your progress is in the address of this page and nowhere else" in said(at)
    assert get("positives_only").aim in said(at)
    assert "Contrastive. About 2 min, trains one run." in said(at)
    assert "Triplet margin. About 3 min, shows 3 runs." in said(at)
    at = opened(learn_part="failures")
    assert {failure.title for failure in failures()} <= {one.label for one in at.button}


def test_nothing_is_trained_or_told_before_a_prediction(opened):
    runs = len(scheduler().runs)
    at = opened(learn_lesson="margin_and_dead_zone")
    lesson = get("margin_and_dead_zone")
    assert button(at, "Predict and run").disabled
    assert len(scheduler().runs) == runs
    assert "learn token" not in at.session_state
    assert lesson.question.why not in said(at)
    assert "Take away" not in said(at)
    at.radio[0].set_value(0).run()
    button(at, "Predict and run").click().run()
    assert "You predicted: **it falls by more than 10 points**" in said(at)
    assert lesson.question.why not in said(at)
    until(at, lambda page: "Take away" in said(page), "the mark")
    assert "**Not quite.**" in said(at)
    assert "The answer is: it rises by more than 10 points." in said(at)
    assert "learn.done" not in at.query_params
    button(at, "Predict again").click().run()
    assert lesson.question.why not in said(at)
    at.radio[0].set_value(2).run()
    button(at, "Predict and run").click().run()
    until(at, lambda page: "Take away" in said(page), "the second mark")
    assert "**Right.**" in said(at)
    assert at.query_params["learn.done"] == "margin_and_dead_zone"


def test_a_recorded_lesson_is_marked_at_once_and_another_seed_trains(opened):
    at = opened(learn_lesson="hard_semihard_easy")
    at.radio[0].set_value(1).run()
    button(at, "Predict and run").click().run()
    assert "**Right.** Measured: +0 points." in said(at)
    run = scheduler().get(at.session_state["learn token"])
    assert run.shown is not None
    button(at, "Play").click().run()
    until(at, lambda _: run.shown is None, "the run shown to train live")
    assert "**Right.** Measured: +0 points." in said(at)
    button(at, "Train it with another seed").click().run()
    assert "Take away" not in said(at)
    until(at, lambda page: "Take away" in said(page), "three runs")
    assert "**Right.** Measured: +0 points." in said(at)
    assert run.config.seed == 1
    shown = next(one for one in at.get("button_group") if one.label == "Run shown below")
    shown.set_value("a").run()
    assert run.config.miner_values["type_of_triplets"] == "easy"


def test_a_lesson_takes_a_place_only_while_it_trains(opened):
    at = opened(learn_lesson="dcl_small_batches")
    at.radio[0].set_value(2).run()
    button(at, "Predict and run").click().run()
    run = scheduler().get(at.session_state["learn token"])
    assert run.shown is None
    button(at, "All lessons").click().run()
    assert run.state == "closed"
    assert "learn token" not in at.session_state
    button(at, "2. The margin and the dead zone").click().run()
    at.radio[0].set_value(2).run()
    button(at, "Predict and run").click().run()
    until(at, lambda page: "Take away" in said(page), "the mark")
    run = scheduler().get(at.session_state["learn token"])
    assert run.shown is not None
    button(at, "All lessons").click().run()
    button(at, "2. The margin and the dead zone, done").click().run()
    assert "Take away" in said(at)
    assert scheduler().get(at.session_state["learn token"]) is run


def test_numbers_and_sketches_are_asked_for(opened):
    at = opened(learn_lesson="beta")
    assert button(at, "Predict and run").disabled
    at.number_input[0].set_value(60.0).run()
    assert not button(at, "Predict and run").disabled
    at = opened(learn_lesson="positives_only")
    assert button(at, "Predict and run").disabled
    assert len(at.slider) == 5
    at.slider[0].set_value(100).run()
    assert not button(at, "Predict and run").disabled


def test_a_failure_is_named_and_the_button_cures_it(opened):
    at = opened(learn_part="failures", learn_failure="no_positives")
    until(at, lambda page: page.error, "the detector")
    assert "No positive pair in the batch" in at.error[0].value
    button(at, "Draw 4 samples from each class").click().run()
    until(at, lambda page: page.success, "the cure")
    assert at.success[0].value == "Cured: the detector finds it no more."
    table = next(one.value for one in at.markdown if one.value.startswith("| At the last step"))
    assert "| Alignment |" in table


def keys_of_panel(at):
    """What the keys of the live panel may do: nothing that the page has no button for."""
    return json.loads(component(at).json)["allowed"]


def test_a_linked_moment_is_frozen_and_opens_after_the_prediction(opened):
    at = opened(
        learn_part="moment",
        learn_run="data=blobs~blobs.points=200~batch=32~loss=NTXentLoss~steps=30",
        learn_step="6",
        learn_show="Play,temperature",
        learn_ask="Will it spread?",
        learn_answers="yes~no",
    )
    run = scheduler().get(at.session_state["learn token"])
    run.attach("test")  # nobody watching, a slow machine would pause it before
    until(at, lambda _: run.state == "paused", "the moment")
    assert run.step == 6
    assert button(at, "Play") is None
    assert keys_of_panel(at) == []
    assert len(at.number_input) == 0
    button(at, "Present").click().run()
    button(at, "Open a room").click().run()
    assert "**0** of 0 in the room have predicted." in said(at)  # a moment has no mark
    button(at, "Stop presenting").click().run()
    at.radio[0].set_value("yes").run()
    button(at, "Predict").click().run()
    assert [one.label for one in at.number_input] == ["Temperature"]
    assert {one.label for one in at.button} & {"Play", "Pause", "Step", "Reset"} == {"Play"}
    assert keys_of_panel(at) == ["play"]
    at.number_input[0].set_value(0.5).run()
    button(at, "Play").click().run()
    until(at, lambda _: run.state == "finished", "the end")
    assert [(event.name, event.value) for event in run.config.events] == [("temperature", 0.5)]


def test_a_link_is_composed_from_the_train_page(opened):
    at = opened(learn_part="make")
    assert "There is no run in this tab yet" in said(at)
    at.switch_page("pages/train.py")
    for key, value in {"data": "blobs", "blobs.points": "200", "loss": "NTXentLoss"}.items():
        at.query_params[key] = value
    at.run()
    at.switch_page("pages/learn.py")
    at.query_params.clear()
    at.query_params["learn.part"] = "make"
    at.run()
    at.text_input[0].set_value("What is next?").run()
    link = at.code[0].value
    for part in ("learn.part=moment", "blobs.points%3D200", "learn.ask=What+is+next%3F", "Play,Pause,Reset"):
        assert part in link
    at.text_area[0].set_value("only one").run()
    assert "2 to 5 answers" in said(at)


def test_a_failure_is_presented_without_a_room(opened):
    at = opened(learn_part="failures")
    button(at, "Present").click().run()
    assert at.query_params["present"] == "1"
    assert button(at, "Collapse to the margin") is not None
    assert button(at, "Open a room") is None
    button(at, "Stop presenting").click().run()
    assert button(at, "Present") is not None


def test_a_presenter_sees_what_a_room_predicts(opened):
    teacher = opened(learn_lesson="margin_and_dead_zone")
    button(teacher, "Present").click().run()
    assert teacher.query_params["present"] == "1"
    button(teacher, "Open a room").click().run()
    code = teacher.query_params["learn.room"]
    assert f"learn.room={code}" in teacher.code[0].value
    assert "present" not in teacher.code[0].value
    assert "QR code" in [block.proto.popover.label for block in teacher.main if block.type == "popover"]
    student = opened(learn_lesson="margin_and_dead_zone", learn_room=code)
    assert "counted without a name" in said(student)
    student.radio[0].set_value(1).run()
    button(student, "Predict and run").click().run()
    teacher.run()
    assert "**1** of 1 in the room have predicted, **" in said(teacher)
    assert rooms().counts(code, "margin_and_dead_zone").answers == {"it stays within 10 points": 1}
    button(teacher, "Close the room").click().run()
    student.run()
    assert f"There is no room {code} any more" in said(student)


def test_a_link_that_asks_for_nonsense_is_answered_in_sentences(opened):
    at = opened(learn_part="nowhere", learn_lesson="betta", learn_seed="-1", learn_room="x", present="yes")
    text = said(at)
    for part in ("nowhere", "did you mean beta", "a room's code has 6", "present must be 0 or 1"):
        assert part in text or part.capitalize() in text
    assert "Traceback" not in text
    assert not at.exception


def test_a_greek_letter_keeps_its_size():
    assert capital("β = 1.2") == "β = 1.2"
    assert capital("it rises") == "It rises"
