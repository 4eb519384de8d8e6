"""Presets: the recordings that are shipped are those that training gives, and their pictures show them."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from lab import presets
from lab.figures.palette import COLOURS
from lab.presets import FAILURE, GOOD
from lab.presets.__main__ import FIRST_STEPS, main, staleness
from lab.presets.picture import MOST_POINTS, caption, last_moment, picture, summary
from lab.recording import Recording
from losslib.errors import ParameterError

NAMES = [preset.name for preset in presets.presets()]
ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"


def test_there_are_three_good_ones_and_three_failures_with_their_cure():
    kinds = [preset.kind for preset in presets.presets()]
    assert kinds == sorted(kinds, reverse=True), "good ones first"
    assert min(kinds.count(GOOD), kinds.count(FAILURE)) >= 3
    assert len(set(NAMES)) == len(kinds)
    for preset in presets.presets():
        assert bool(preset.cure) == (preset.kind == FAILURE), preset.name
        assert preset.look.endswith("."), preset.name
        assert ". " not in preset.look, "one sentence"


def test_all_recordings_together_are_small():
    sizes = [preset.recording_file.stat().st_size for preset in presets.presets()]
    assert sum(sizes) < 800_000


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_what_training_its_settings_gives(name):
    assert staleness(presets.get(name)) == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_goes_to_the_end_of_its_run(name):
    preset = presets.get(name)
    recording = preset.recording()
    assert recording.frames[0].step == 0
    assert recording.frames[-1].step == recording.curves()["step"][-1]
    assert (recording.state == "diverged") == bool(recording.reason)
    assert recording.state == "diverged" or recording.frames[-1].step == preset.config().steps


def test_changed_settings_and_changed_numbers_are_found(monkeypatch):
    preset = presets.get("collapse")
    other = replace(preset, settings={**preset.settings, "seed": "1"})
    assert staleness(other) == "its settings changed since it was recorded"
    recording = Recording.load(preset.recording_file)
    curves = recording.curves()
    curves["loss"][FIRST_STEPS - 1] += 0.1
    recording.restore_curves(curves)
    monkeypatch.setattr(presets, "_recording", lambda name: recording)
    assert staleness(preset).startswith(f"loss at step {FIRST_STEPS - 1} is now 4.67883, recorded is 4.77883")


def test_the_command_makes_and_checks(monkeypatch, tmp_path, capsys):
    source = presets.FOLDER / "numbers_run_away.toml"
    (tmp_path / source.name).write_text(source.read_text())
    monkeypatch.setattr(presets, "FOLDER", tmp_path)
    presets.presets.cache_clear()
    presets._recording.cache_clear()
    try:
        assert main(["--check"]) == 1
        assert "numbers_run_away: run file: cannot be read" in capsys.readouterr().err
        assert main(["--make"]) == 0
        assert "numbers_run_away: 2 frames" in capsys.readouterr().out
        assert main(["--check"]) == 0
    finally:
        presets.presets.cache_clear()
        presets._recording.cache_clear()


def test_an_unknown_preset_is_one_sentence():
    with pytest.raises(ParameterError, match="no preset is called 'colapse'; did you mean collapse"):
        presets.get("colapse")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_shows_the_last_frame(name):
    preset = presets.get(name)
    text = picture(preset, COLOURS, "#123456")
    assert len(text) < 15_000
    paths = ElementTree.fromstring(text).findall(f"{SVG}path")
    *dots, positive, negative, _axis = paths
    frame = preset.recording().frames[-1]
    labels = preset.recording().labels
    every = -(-len(labels) // MOST_POINTS)
    assert sum(path.get("d").count("M") for path in dots) == len(labels[::every])
    assert {path.get("stroke") for path in dots} == {COLOURS[label] for label in set(labels[::every])}
    fullest = int(frame.histogram.positive.argmax())
    heights = [int(part.partition("H")[0]) for part in positive.get("d").split("V")[1:-1]]
    assert heights[fullest] == min(heights) == 60, "the fullest bin of positives reaches the top"
    assert (positive.get("fill"), negative.get("fill")) == (COLOURS[0], COLOURS[4])


def test_the_unit_circle_is_drawn_where_the_map_is_one():
    """A plane of eight coordinates of length 1 lies within it, and is no circle."""
    for name, circles in (("just_the_loss", 1), ("collapse", 1), ("temperature", 0), ("numbers_run_away", 0)):
        drawn = ElementTree.fromstring(picture(presets.get(name), COLOURS, "#000000"))
        assert len(drawn.findall(f"{SVG}circle")) == circles, name


def test_a_picture_of_a_circle_keeps_its_place():
    preset = presets.get("just_the_loss")
    frame = preset.recording().frames[-1]
    first = ElementTree.fromstring(picture(preset, COLOURS, "#000000")).find(f"{SVG}path").get("d")
    x, y = (int(part) for part in first[1:].partition("h")[0].split())
    moment = last_moment(preset.name)
    place = int(np.flatnonzero(moment.labels == 0)[0])
    angle = np.arctan2(600 - y, x - 600)
    expected = np.arctan2(frame.positions[place, 1], frame.positions[place, 0])
    assert np.cos(angle - expected) > 0.9999


def test_numbers_beside_a_picture_are_the_recordings():
    preset = presets.get("collapse")
    assert caption(preset) == "Step 300, recall@1 17 % (chance 17 %)"
    assert summary(preset).startswith("Collapse, at step 300: map of 502 embeddings of 6 classes")


@pytest.mark.parametrize("module", ["ui.home", "lab.presets.picture"])
def test_pictures_need_neither_torch_nor_plotly(module):
    code = (
        f"import sys, {module}\n"
        "from lab.presets import presets\n"
        "from lab.presets.picture import picture\n"
        "assert all(len(picture(preset, ['#000000'] * 10, '#000000')) > 500 for preset in presets())\n"
        "print(sorted({'torch', 'plotly', 'sklearn', 'pandas'} & set(sys.modules)))"
    )
    # Streamlit itself loads Plotly.
    expected = "['plotly']" if module == "ui.home" else "[]"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
