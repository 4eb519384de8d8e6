"""Continue from here, Undo, Save run and Open run on the Train page."""

import base64
from pathlib import Path
from types import SimpleNamespace

import pytest
import segno
from streamlit.testing.v1 import AppTest

from lab.opened import as_file, open_run
from tests.ui.opening import runs_closed
from tests.ui.test_pages import LIGHT, healthy, wait
from ui.live.route import command
from ui.server import scheduler
from ui.sharing import qr_code
from ui.take_home import curves_csv

ROOT = Path(__file__).resolve().parents[2]
MARGIN = "ContrastiveLoss.neg_margin"


@pytest.fixture
def trained():
    """The page with a run that was trained to its end."""

    def train(**query):
        at = AppTest.from_file(str(ROOT / "home.py"), default_timeout=60).run()
        at.switch_page("pages/train.py")
        for key, value in {**LIGHT, "steps": "12", **query}.items():
            at.query_params[key] = value
        at.session_state["take home"] = at.session_state["link"] = True  # both are open
        at.run()
        run = scheduler().get(at.session_state["run.token"])
        run.attach("test")
        wait(lambda: run.state == "ready", run)
        press(at, "Play")
        wait(lambda: run.state == "finished", run)
        return at.run(), run

    with runs_closed():
        yield train


def named(at, label):
    [button] = [button for button in at.button if button.label == label]
    return button


def press(at, label):
    named(at, label).click().run()
    healthy(at, label)


def scrub(at, step):
    at.session_state["run.shown_step"] = step
    at.run()


def test_continue_from_a_scrubbed_step_with_another_margin_and_undo(trained):
    at, run = trained()
    assert named(at, "Continue from here").disabled
    whole = run.recording
    scrub(at, 5)
    at.get_by_key(MARGIN).set_value(0.5).run()
    scrub(at, 5)
    press(at, "Continue from here")
    wait(lambda: run.state == "finished", run)
    at.run()
    assert [tuple(event) for event in run.config.events] == [(6, "neg_margin", 0.5)]
    losses, others = (r.curves()["loss"] for r in (whole, run.recording))
    assert losses[:6].tolist() == others[:6].tolist()
    assert losses[-1] != others[-1]
    assert "continuing from step 5" in named(at, "Undo").proto.help
    press(at, "Undo")
    assert run.recording is whole
    assert (run.state, run.step) == ("finished", 12)
    assert "negative margin from 1" in named(at, "Undo").proto.help
    press(at, "Undo")
    assert run.config.events == ()
    assert at.get_by_key(MARGIN).value == 1.0
    assert named(at, "Undo").disabled
    assert "negative margin from 1" in named(at, "Redo").proto.help
    press(at, "Redo")
    assert at.get_by_key(MARGIN).value == 0.5
    press(at, "Redo")
    assert [tuple(event) for event in run.config.events] == [(6, "neg_margin", 0.5)]
    assert run.recording.curves()["loss"].tolist() == others.tolist()
    assert named(at, "Redo").disabled


def test_several_runs_are_taken_back_and_done_again_until_something_new_begins(trained):
    at, run = trained()
    for dim in (8, 3):
        at.get_by_key("dim").set_value(dim).run()
        press(at, "Start a new run with these")
        wait(lambda: run.state == "ready", run)
        press(at, "Step")
        wait(lambda: run.step == 1 and run.state == "paused", run)
        at.run()
    for dim, step in ((8, 1), (8, 1), (2, 12)):
        press(at, "Undo")
        assert (run.config.dim, run.step) == (dim, step)
    press(at, "Undo")
    assert named(at, "Undo").disabled
    assert at.get_by_key("dim").value == 2
    for dim, value in ((2, 8), (8, 8), (8, 3), (3, 3)):
        press(at, "Redo")
        assert (run.config.dim, at.get_by_key("dim").value) == (dim, value)
    press(at, "Undo")
    at.get_by_key("lr").set_value(0.01).run()
    assert named(at, "Redo").disabled, "a new change ends what was taken back"


def test_undo_turns_a_knob_back_and_the_run_goes_on(trained):
    at, run = trained(steps="40")
    run.extend(5)
    at.get_by_key("lr").set_value(0.01).run()
    press(at, "Step")
    wait(lambda: run.step == 41, run)
    assert [tuple(event) for event in run.config.events] == [(41, "lr", 0.01)]
    press(at, "Undo")
    assert at.get_by_key("lr").value == 0.003
    assert [tuple(event) for event in run.config.events] == [(41, "lr", 0.01), (42, "lr", 0.003)]
    assert run.step == 41


def test_undo_brings_back_the_run_that_a_new_one_replaced_and_then_the_setting(trained):
    at, run = trained()
    whole = run.recording
    at.get_by_key("dim").set_value(8).run()
    press(at, "Start a new run with these")
    wait(lambda: run.state == "ready", run)
    assert run.config.dim == 8
    press(at, "Undo")
    assert (run.config.dim, run.step) == (2, 12)
    assert run.recording is whole
    assert "not in the run shown: embedding size" in at.info[0].value
    press(at, "Undo")
    assert at.get_by_key("dim").value == 2
    assert not at.info


def test_a_run_keeps_its_own_knobs_when_another_loss_is_chosen(trained):
    at, run = trained(steps="40")
    run.extend(5)
    at.get_by_key("loss").set_value("TripletMarginLoss").run()
    healthy(at, "another loss")
    assert at.get_by_key("TripletMarginLoss.margin") is not None
    assert "Of the run shown, which goes on with Contrastive" in " ".join(c.value for c in at.caption)
    at.get_by_key(MARGIN).set_value(0.7).run()
    press(at, "Step")
    wait(lambda: run.step == 41, run)
    assert [tuple(event) for event in run.config.events] == [(41, "neg_margin", 0.7)]
    press(at, "Start a new run with these")
    wait(lambda: run.state == "ready", run)
    at.run()
    assert run.config.loss == "TripletMarginLoss"
    assert MARGIN not in [one.key for one in at.number_input]


def test_play_after_a_phase_beyond_the_end_trains_on(trained):
    _, run = trained()
    command(run, "phase")
    wait(lambda: run.phase_note is not None, run)
    assert (run.step, run.total) == (12, 13)
    command(run, "play")
    wait(lambda: run.state == "finished" and run.step > 13, run)
    assert run.step == 26, "as many steps again as it had"


def give(monkeypatch, content):
    """Let the page's next run find this run file in its uploader, once."""
    given = [SimpleNamespace(name="mine.npz", getvalue=lambda: content)]
    monkeypatch.setattr("streamlit.file_uploader", lambda *_, **__: given.pop() if given else None)


def test_a_file_that_was_opened_is_shown_and_can_be_continued(trained, monkeypatch):
    _, run = trained(events="3:neg_margin=0.7", seed="4")
    content = as_file(run.recording)
    other, fresh = trained()
    assert open_run(content).config.seed == 4
    give(monkeypatch, content)
    other.run()
    wait(lambda: fresh.state == "recorded", fresh)
    other.query_params["events"] = "3:neg_margin=0.7"  # a browser has it in its address
    other.run()
    healthy(other, "opened")
    assert "mine.npz" in other.info[0].value
    assert (fresh.config.seed, fresh.config.events) == (4, run.config.events)
    assert other.get_by_key("seed").value == 4
    assert fresh.recording.equals(run.recording)
    assert named(other, "Undo").proto.help.startswith("Takes back: opening mine.npz.")
    scrub(other, 6)
    press(other, "Continue from here")
    wait(lambda: fresh.state == "finished", fresh)
    assert fresh.recording.equals(run.recording), "trained again here, with its change at step 3"


def test_undo_of_an_opened_file_brings_back_run_and_settings(trained, monkeypatch):
    _, run = trained(seed="4")
    content = as_file(run.recording)
    at, mine = trained()
    whole = mine.recording
    give(monkeypatch, content)
    at.run()
    wait(lambda: mine.state == "recorded", mine)
    at.run()
    assert at.get_by_key("seed").value == 4
    press(at, "Undo")
    assert (mine.recording, mine.config.seed, at.get_by_key("seed").value) == (whole, 0, 0)
    assert named(at, "Undo").disabled


def test_another_link_ends_what_can_be_taken_back(trained):
    at, run = trained()
    at.get_by_key("lr").set_value(0.01).run()
    assert not named(at, "Undo").disabled
    at.switch_page("pages/reference.py").run()
    at.query_params.clear()
    at.switch_page("pages/train.py").run()
    assert "learning rate" in named(at, "Undo").proto.help, "coming back is no change"
    at.switch_page("pages/reference.py").run()
    at.switch_page("pages/train.py")
    for key, value in {**LIGHT, "seed": "9"}.items():
        at.query_params[key] = value
    at.run()
    assert run.config.seed == 9
    assert "learning rate" not in named(at, "Undo").proto.help


def test_a_broken_file_is_a_sentence_and_the_run_stays(trained, monkeypatch):
    at, run = trained()

    class Given:
        name = "notes.npz"

        @staticmethod
        def getvalue():
            return b"not a run"

    given = [Given]
    monkeypatch.setattr("streamlit.file_uploader", lambda *_, **__: given.pop() if given else None)
    at.run()
    healthy(at, "broken file")
    assert "notes.npz: This is no run file" in at.warning[0].value
    assert (run.state, run.step) == ("finished", 12)


def test_curves_and_scripts_can_be_taken_home(trained):
    at, run = trained(loss="NTXentLoss")
    labels = [button.label for button in at.get("download_button")]
    assert [label for label in labels if label not in ("HTML", "CSV")] == [
        "Save run",
        "Curves as CSV",
        "Script with losslib",
        "Script with pytorch-metric-learning",
    ]
    head, *rows = curves_csv(run.recording).splitlines()
    assert head.startswith("step,loss,active_share,")
    assert [row.split(",")[0] for row in rows] == [*map(str, range(11)), "12"]
    third = dict(zip(head.split(","), rows[3].split(","), strict=True))
    assert float(third["loss"]) == pytest.approx(run.recording.at(3).loss, rel=1e-8)
    assert third["map_at_r"] == "", "MAP@R belongs to every tenth frame"
    [command] = [code.value for code in at.code if code.value.startswith("python -m lab.run")]
    assert "--loss NTXentLoss" in command


def test_a_long_link_has_no_qr_code_and_a_short_one_is_read_as_what_it_is():
    address = "http://school.example/train?data=blobs&loss=NTXentLoss&NTXentLoss.temperature=0.1&step=120"
    drawn = base64.b64decode(qr_code(address).partition("base64,")[2].rstrip('">')).decode()
    assert drawn.startswith("<svg")
    size = segno.make(address, error="l", micro=False).symbol_size(border=4)[0]
    assert f'viewBox="0 0 {size} {size}"' in drawn
    assert 'fill="#fff"' in drawn, "white behind it, so that it reads in the dark theme"


def test_a_link_turns_on_the_switches_that_it_shows(trained):
    at, run = trained(show="advice,nonsense")
    assert at.get_by_key("advice").value is True
    assert at.get_by_key("figures").value is False
    assert not at.warning
    [link] = [code.value for code in at.code if "data=blobs" in code.value and "lab.run" not in code.value]
    assert link.endswith("&step=12&show=advice")
    assert run.step == 12
