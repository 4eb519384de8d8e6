"""Presets in the app: cards on Home, and the recording on Train until it is trained."""

import pytest

from lab import presets
from tests.ui.opening import home, opened_at, runs_closed
from tests.ui.test_pages import healthy, wait
from ui.navigation import entries
from ui.server import scheduler


@pytest.fixture
def opened():
    def open_train(**query):
        at = opened_at("train", query)
        run = scheduler().get(at.session_state["run.token"])
        wait(lambda: run.state not in ("queued", "preparing"), run)
        return at, run

    with runs_closed():
        yield open_train


def test_every_preset_has_a_card_with_its_picture_and_link():
    at = home().run()
    healthy(at, "home")
    links = {link.proto.label: link.proto for link in at.get("page_link")}
    pictures = [block.proto.body for block in at.get("html") if "preset-picture" in block.proto.body]
    texts = [text.value for text in at.markdown]
    assert len([text for text in pictures if "data:image/svg+xml;base64," in text]) == len(presets.presets())
    for preset in presets.presets():
        link = links[f"**{preset.title}**"]
        assert f"preset={preset.name}" in link.query_string
        assert f"data={preset.settings['data']}" in link.query_string
        assert preset.look in texts
        assert not preset.cure or f"**Cure.** {preset.cure}" in texts


def test_home_says_that_a_link_changes_nothing_there():
    at = home()
    at.query_params["loss"] = "NTXentLoss"
    at = at.run()
    assert ["`loss` in the link" in one.value for one in at.warning] == [True]


def test_every_page_has_a_door_on_home_in_the_card_of_its_group():
    at = home().run()
    assert not at.warning
    links = [link.proto.label for link in at.main if link.type == "page_link"]
    captions = [caption.value for caption in at.caption]
    for entry in entries()[1:]:
        assert f"**{entry.title}**" in links
        assert entry.summary in captions


@pytest.mark.parametrize("whole", [True, False])
def test_a_preset_shows_its_recording_and_says_what_to_look_for(whole, opened):
    preset = presets.get("collapse")
    at, run = opened(preset="collapse", **(preset.settings if whole else {}))
    healthy(at, "train")
    assert (run.state, run.step) == ("recorded", 300)
    assert run.recording is preset.recording()
    assert run.config == preset.config()
    [info] = [info.value for info in at.info]
    assert preset.look in info
    assert preset.cure in info


def test_play_trains_the_settings_shown_from_step_0(opened):
    at, run = opened(preset="collapse", **presets.get("collapse").settings)
    at.get_by_key("lr").set_value(0.001).run()
    assert (run.state, run.step, run.config.lr) == ("recorded", 300, 0.001)
    assert run.config.events == ()
    assert not at.info, "other settings than the preset's: its text would be wrong"
    run.attach("test")
    [step] = [button for button in at.button if button.label == "Step"]
    step.click().run()
    wait(lambda: run.step == 1, run)
    assert run.shown is None
    assert run.recording.frames[-1].learning_rate == 0.001
    assert not [info.value for info in at.info if "not in the run shown" in info.value]


def test_reset_leaves_the_recording(opened):
    at, run = opened(preset="just_the_loss", **presets.get("just_the_loss").settings)
    [reset] = [button for button in at.button if button.label == "Reset"]
    reset.click().run()
    wait(lambda: run.state == "ready", run)
    assert (run.step, run.shown, run.config) == (0, None, presets.get("just_the_loss").config())


def test_a_link_with_other_settings_than_its_preset_is_a_plain_run(opened):
    at, run = opened(preset="collapse", **{**presets.get("collapse").settings, "seed": "5"})
    assert (run.state, run.step, run.config.seed) == ("ready", 0, 5)
    assert not at.info


def test_a_recording_can_be_studied_in_figures(opened):
    at, _run = opened(preset="just_the_loss", **presets.get("just_the_loss").settings)
    at.get_by_key("figures").set_value(True).run()
    healthy(at, "figures")
    assert len(at.get("plotly_chart")) == 3
    assert "Step 300" in [caption.value for caption in at.caption]


def test_a_run_that_is_gone_is_said_and_begun_again_with_the_same_settings(opened):
    at, run = opened(data="blobs", seed="9")
    scheduler().close(run.token)
    at.run()
    healthy(at, "train")
    assert "no longer has the former run" in at.info[0].value
    again = scheduler().get(at.session_state["run.token"])
    assert again is not run
    assert again.config == run.config
    at.run()
    assert not at.info, "once"


def test_an_unknown_preset_is_said(opened):
    at, run = opened(preset="colapse", data="blobs")
    [warning] = [warning.value for warning in at.warning]
    assert "No preset is called 'colapse'; did you mean collapse?" in warning
    assert (run.state, run.config.data) == ("ready", "blobs")
