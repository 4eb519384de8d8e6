"""Every page opens without an exception, and so it stays with each control at both of its ends."""

import re
import time
from pathlib import Path

import pytest

from lab.run import Run
from lab.settings import sentence
from tests.ui.opening import ROOT, home, opened_at, runs_closed
from ui.navigation import entries
from ui.server import scheduler

PAGES = [file.relative_to(ROOT).as_posix() for file in sorted((ROOT / "pages").glob("*.py"))]
LIGHT = {"data": "blobs", "blobs.points": "200", "batch": "32", "per_class": "4"}
KINDS = ("slider", "select_slider", "selectbox", "number_input", "toggle", "checkbox")


@pytest.fixture
def opened():
    with runs_closed():
        yield lambda page, **query: opened_at(Path(page).stem, {**LIGHT, **query})


def ends(widget):
    """The two ends of a control, as values it takes."""
    kind = widget.type
    if kind in ("toggle", "checkbox"):
        return True, False
    if kind == "select_slider":
        return float(widget.options[0]), float(widget.options[-1])
    if kind == "selectbox":
        return widget.options[0], widget.options[-1]
    return tuple(end for end in (widget.min, widget.max) if end is not None)


def healthy(at, what):
    assert not at.exception, f"{what}: {at.exception[0].value}"
    assert not [error.value for error in at.error if "mistake is ours" in error.value], what


def test_home_says_what_it_is_and_leads_to_every_page():
    at = home().run()
    healthy(at, "home")
    assert at.title[0].value == "Loss Lab"
    links = [link.proto.page for link in at.get("page_link")]
    assert {Path(page).stem for page in PAGES} <= set(links)
    assert entries()[0].path == "home.py"


@pytest.mark.parametrize("page", PAGES)
def test_page_opens(page, opened):
    at = opened(page)
    healthy(at, page)
    assert at.title
    assert at.sidebar.get("page_link")


@pytest.mark.parametrize("page", PAGES)
def test_every_control_bears_both_ends(page, opened):
    at = opened(page)
    keys = [widget.key for kind in KINDS for widget in getattr(at, kind)]
    assert len(keys) == len(set(keys))
    assert page != "pages/train.py" or len(keys) > 12
    for key in keys:
        for end in range(2):
            widget = next((w for kind in KINDS for w in getattr(at, kind) if w.key == key), None)
            if widget is None or len(ends(widget)) <= end:
                continue  # another choice took this control away
            before, value = widget.value, ends(widget)[end]
            at = widget.set_value(value).run()
            healthy(at, f"{page}: {key} at {value!r}")
            back = next((w for kind in KINDS for w in getattr(at, kind) if w.key == key), None)
            if back is not None:
                at = back.set_value(before).run()
                healthy(at, f"{page}: {key} back at {before!r}")


def test_buttons_drive_the_run(opened):
    at = opened("pages/train.py")
    [run] = [run for run in scheduler().runs if run.token == at.session_state["run.token"]]
    run.attach("test")  # else nobody watches, and it pauses by itself
    assert [button.label for button in at.button][:5] == ["Play", "Pause", "Step", "Phase", "Reset"]
    wait(lambda: run.state == "ready", run)
    at.button[2].click().run()
    wait(lambda: run.step == 1, run)
    at.button[3].click().run()
    wait(lambda: run.phase_note is not None, run)
    assert (run.step, run.phase_note["name"], run.phase_note["step"]) == (1, "sample", 2)
    at.button[0].click().run()
    wait(lambda: run.state == "finished", run)
    assert run.step == 300
    at.button[4].click().run()
    wait(lambda: run.state == "ready", run)
    assert (run.step, run.config.seed) == (0, 0)


def test_a_knob_becomes_an_event_and_a_structural_setting_waits(opened):
    at = opened("pages/train.py")
    run = scheduler().get(at.session_state["run.token"])
    run.attach("test")
    wait(lambda: run.state == "ready", run)
    at.button[2].click().run()
    wait(lambda: run.step == 1, run)
    at.get_by_key("ContrastiveLoss.neg_margin").set_value(0.8).run()
    assert [tuple(event) for event in run.config.events] == [(2, "neg_margin", 0.8)]
    at.get_by_key("lr").set_value(0.01).run()
    assert [event.name for event in run.config.events] == ["neg_margin", "lr"]
    at.get_by_key("dim").set_value(8).run()
    assert run.config.dim == 2
    assert "not in the run shown: embedding size" in at.info[0].value
    [button] = [button for button in at.button if button.label == "Start a new run with these"]
    button.click().run()
    assert (run.config.dim, run.config.events, run.config.lr) == (8, (), 0.01)
    assert dict(run.config.loss_options) == {"neg_margin": 0.8}


def test_the_link_of_a_run_opens_the_same_run(opened):
    at = opened("pages/train.py", loss="NTXentLoss", **{"NTXentLoss.temperature": "0.2", "seed": "7"})
    run = scheduler().get(at.session_state["run.token"])
    assert (run.config.loss, run.config.seed, dict(run.config.loss_options)) == (
        "NTXentLoss",
        7,
        {"temperature": 0.2},
    )
    again = opened("pages/train.py", **run.config.to_settings())
    other = scheduler().get(again.session_state["run.token"])
    assert other.token != run.token
    assert other.config == run.config


def test_a_link_with_changes_while_training_repeats_them(opened):
    at = opened("pages/train.py", events="3:neg_margin=0.5,5:lr=0.01")
    run = scheduler().get(at.session_state["run.token"])
    assert [tuple(event) for event in run.config.events] == [(3, "neg_margin", 0.5), (5, "lr", 0.01)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"loss": "ContrastivLoss"}, "ContrastiveLoss"),
        ({"dim": "1"}, "dim must be a whole number from 2 to 512"),
        ({"lr": "-1"}, "lr must be"),
        ({"lr": "nan"}, "lr must be"),
        ({"batch": "1"}, "batch must be"),
        ({"encoder": "cnn"}, "needs images"),
        ({"per_class": "64"}, "per_class must be at most the batch size"),
        ({"blobs.classes": "1"}, "classes must be"),
        ({"colour": "red"}, "no setting 'colour'"),
        ({"ContrastiveLoss.margin": "1"}, "has no option 'margin'"),
        ({"seed": "-3"}, "seed must be"),
    ],
)
def test_refused_values_are_said_in_a_sentence_and_the_default_is_used(query, words, opened):
    at = opened("pages/train.py", **query)
    healthy(at, query)
    [warning] = [warning.value for warning in at.warning]
    assert words in warning
    run = scheduler().get(at.session_state["run.token"])
    assert (run.config.lr, run.config.dim, run.config.seed) == (0.003, 2, 0)
    assert run.config.loss == "ContrastiveLoss"


def test_a_loss_that_needs_two_views_is_not_offered_and_a_link_to_it_keeps_the_rest(opened):
    at = opened("pages/train.py", loss="VICRegLoss", seed="7", **{"ContrastiveLoss.neg_margin": "0.5"})
    healthy(at, "two views")
    [warning] = [warning.value for warning in at.warning]
    assert "VICRegLoss needs two views of each sample" in warning
    control = at.get_by_key("loss")
    assert control.value == "ContrastiveLoss"
    assert "TripletMarginLoss" in control.options
    assert not {"VICRegLoss", "BarlowTwinsLoss", "AlignmentUniformityLoss"} & set(control.options)
    config = scheduler().get(at.session_state["run.token"]).config
    assert (config.data, config.seed, config.batch) == ("blobs", 7, 32)
    assert (config.loss, dict(config.loss_options)) == ("ContrastiveLoss", {"neg_margin": 0.5})


@pytest.mark.parametrize("query", [{"lr": "nan"}, {"dim": "1"}, {"colour": "red"}, {"per_class": "64"}])
def test_what_was_refused_stays_said_until_a_control_changes(query, opened):
    at = opened("pages/train.py", **query)
    [said] = [warning.value for warning in at.warning]
    assert said.startswith("The link asks")
    for name in query.keys() - {"per_class"}:
        assert name not in at.query_params, "a browser's address has lost it, too"
    at.run()  # as when the tab adopts the run it had
    assert [warning.value for warning in at.warning] == [said]
    at.get_by_key("seed").set_value(5).run()
    assert not [w.value for w in at.warning if w.value == said]


def test_another_link_has_its_own_notice(opened):
    at = opened("pages/train.py", lr="nan")
    at.switch_page("pages/reference.py").run()
    at.switch_page("pages/train.py")
    at.query_params["data"] = "blobs"
    at.run()
    assert not at.warning


def test_controls_that_do_not_go_together_are_not_blamed_on_the_link(opened):
    at = opened("pages/train.py")
    at.get_by_key("per_class").set_value(64).run()
    run = scheduler().get(at.session_state["run.token"])
    for _ in range(2):  # by the second time the address has it, too
        [warning] = [warning.value for warning in at.warning]
        assert warning.startswith("per_class must be at most the batch size 32, got 64.")
        assert "The run shown keeps its own settings" in warning
        assert run.config.per_class == 4
        at.run()


@pytest.mark.parametrize(
    ("query", "words"),
    [({"batch": "4096"}, "at most 1024 for batch"), ({"steps": "100000"}, "at most 20000 for steps")],
)
def test_what_the_server_does_not_allow_is_said_in_a_sentence(query, words, opened):
    at = opened("pages/train.py", **query)
    healthy(at, query)
    assert words in at.warning[0].value


def test_a_batch_larger_than_the_data_ends_in_a_reason(opened):
    at = opened("pages/train.py", **{"blobs.points": "40", "batch": "1024", "per_class": "0"})
    healthy(at, "batch")
    run = scheduler().get(at.session_state["run.token"])
    wait(lambda: run.state == "failed", run)
    assert run.reason == (
        "batch must be at most the 18 training points there are, got 1024; "
        "choose a batch of at most 18, or data with more points."
    )


def test_page_and_bare_loop_give_equal_numbers(opened):
    at = opened("pages/train.py", steps="25", seed="11")
    page_run = scheduler().get(at.session_state["run.token"])
    page_run.attach("test")
    wait(lambda: page_run.state == "ready", page_run)
    at.button[0].click().run()
    wait(lambda: page_run.state == "finished", page_run)
    bare = Run(page_run.config)
    for _ in bare:
        pass
    assert bare.steps_done == 25
    assert page_run.recording.equals(bare.recording)


def test_play_after_divergence_says_what_helps(opened):
    at = opened("pages/train.py", **{"ContrastiveLoss.neg_margin": "1e38"})
    run = scheduler().get(at.session_state["run.token"])
    wait(lambda: run.state == "diverged", run)
    at.button[0].click().run()
    healthy(at, "play")
    assert "Reset begins again" in at.info[0].value
    at.get_by_key("ContrastiveLoss.neg_margin").set_value(1.0).run()
    wait(lambda: run.state == "ready", run)


def test_a_mistake_of_ours_is_a_sentence_with_a_number(opened, monkeypatch):
    def broken(*_):
        raise RuntimeError("inner secret")

    monkeypatch.setattr("ui.session.run_for", broken)
    at = opened("pages/train.py")
    assert not at.exception
    [error] = [error.value for error in at.error]
    assert re.search(r"the mistake is ours \(number \d{6}\)", error)
    assert "inner secret" not in error


def wait(condition, run, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{run}: {run.reason}"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("run: lr must be > 0, got -1", "lr must be > 0, got -1."),
        ("no loss is called 'x'.", "No loss is called 'x'."),
        ("no preset is called 'x'; did you mean y?", "No preset is called 'x'; did you mean y?"),
        (
            "no loss is called '" + "A" * 9000 + "'; known: B",
            "No loss is called '" + "A" * 120 + "...'; known: B.",
        ),
        (
            "run: lr must be > 0, got '" + "a b " * 900 + "'",
            "lr must be > 0, got '" + "a b " * 30 + "...'.",
        ),
        (
            "there is no setting 'a'; settings: " + "b, " * 90 + "'c'",
            "There is no setting 'a'; settings: " + "b, " * 90 + "'c'.",
        ),
    ],
)
def test_a_refusal_ends_once(text, said):
    assert sentence(text) == said
