"""A cell equals the run alone, bit for bit; what goes wrong becomes its state and its reason."""

import io
import math

import numpy as np
import pytest

from lab.config import RunConfig
from lab.recording import Recording
from lab.sweep import example
from lab.sweep.cell import train
from lab.sweep.picture import picture
from lab.sweep.results import MOMENTS, POINTS, failed, load, moments, save
from losslib.errors import ParameterError
from tests.lab.conftest import SMALL

PALETTE = tuple(f"#{n}{n}{n}{n}{n}{n}" for n in range(10))
ENDS = {"lr": 1e20, "optimizer": "sgd", "output": "none"}


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return RunConfig(**{**SMALL, "data_options": {"points": 1000}, "steps": 45})


@pytest.fixture(scope="module")
def trained(config):
    return train(config, with_file=True)


def test_a_cell_equals_a_lone_run_bit_for_bit(config, trained, finished):
    alone = finished(config).recording
    result, curves = trained.result, alone.curves()
    assert all(np.array_equal(result.curves[name], curves[name], equal_nan=True) for name in curves)
    for place, step in enumerate(result.steps):
        frame = alone.at(int(step))
        assert frame.step == step
        assert result.positions[place].tobytes() == frame.positions[:POINTS].tobytes()
        assert result.positive[place].tobytes() == frame.histogram.positive.tobytes()
        assert result.negative[place].tobytes() == frame.histogram.negative.tobytes()
        assert tuple(result.extent[place]) == frame.histogram[:2]
    assert Recording.load(io.BytesIO(trained.file)).equals(alone)


def test_pictures_span_the_run(trained):
    assert trained.result.steps[0] == 0
    assert trained.result.steps[-1] == 45
    assert len(trained.result.steps) <= MOMENTS
    assert trained.result.positions.shape[1:] == (POINTS, 2)
    assert moments(3) == [0, 1, 2, 3]
    assert moments(45)[-1] == 45


def test_the_time_of_a_step_is_measured_and_kept_in_the_run_file(trained):
    assert 0 < trained.result.ms_per_step < 1000 * trained.result.seconds
    assert Recording.load(io.BytesIO(trained.file)).provenance["ms_per_step"] == trained.result.ms_per_step


def test_divergence_is_a_state_with_its_reason():
    result = train(RunConfig(**{**SMALL, **ENDS})).result
    assert result.state == "diverged"
    assert result.lost
    assert "lower the learning rate (it was 1e+20)" in result.reason


def test_collapse_is_marked_with_its_cure():
    result = train(
        RunConfig(**{**SMALL, "steps": 60, "loss_options": {"neg_margin": 0.0}, "lr": 0.03})
    ).result
    assert result.state == "collapsed"
    assert not result.lost
    assert "mean cosine is" in result.reason
    assert "take a loss that pushes negatives apart" in result.reason


def test_what_the_data_cannot_give_is_a_failed_cell():
    result = train(RunConfig(**{**SMALL, "batch": 300, "per_class": 0})).result
    assert result.state == "failed"
    assert result.reason.startswith("batch must be at most the 200 training points")
    assert math.isnan(result.value("recall_at_1"))


def test_results_survive_a_file(trained):
    file = io.BytesIO()
    lost = failed(trained.result.config.replace(seed=5), "It failed.")
    save([trained.result, lost], file)
    file.seek(0)
    again, gone = load(file)
    assert again.config == trained.result.config
    assert np.abs(again.positions - trained.result.positions).max() <= 2 / 65_535  # of a circle's width
    assert again.positive.tobytes() == trained.result.positive.tobytes()
    assert again.marks == trained.result.marks
    assert all(np.array_equal(v, again.curves[n], equal_nan=True) for n, v in trained.result.curves.items())
    assert (again.ms_per_step, again.notes) == (trained.result.ms_per_step, trained.result.notes)
    assert (gone.state, gone.reason, len(gone.steps)) == ("failed", "It failed.", 0)


@pytest.mark.parametrize("content", [b"", b"not a file", b"PK\x03\x04 broken"])
def test_a_damaged_file_is_one_sentence(content):
    with pytest.raises(ParameterError, match="sweep file"):
        load(io.BytesIO(content))


def test_values_are_read_at_or_before_a_step(trained):
    result = trained.result
    step, recall = result.curves["step"], result.curves["recall_at_1"]
    assert result.value("recall_at_1", int(step[5])) == recall[5]
    assert result.value("recall_at_1") == recall[-1]
    assert result.place(-1) == 0
    assert result.steps[result.place(44)] <= 44 < result.steps[result.place(44) + 1]


def test_a_picture_has_a_path_a_class_and_both_histograms(trained):
    drawn = picture(trained.result, 45, PALETTE, "#123456")
    assert drawn.startswith("<svg")
    assert drawn.count('stroke-width="46"') == 6  # classes
    assert drawn.count('Z" fill=') == 2
    assert drawn.count("stroke-dasharray") == 2  # the two margins lie within 0 and 2
    assert picture(trained.result, 0, PALETTE, "#123456") != drawn
    lost = picture(failed(trained.result.config, "no"), 45, PALETTE, "#123456")
    assert lost.count("<path") == 1
    assert "#123456" in lost


def test_the_shipped_sweep_is_what_training_gives():
    assert example.staleness() == ""
    assert [one.config for one in example.example()] == [cell.config for cell in example.plan().cells]
    assert {one.state for one in example.example()} == {"finished", "collapsed"}
