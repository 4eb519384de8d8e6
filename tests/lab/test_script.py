"""Exported scripts, run as they are: the losses they print are those of the recording."""

import contextlib
import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lab.command import main
from lab.config import Event
from lab.script import CLOSE, command, losslib_script, pml_script

ROOT = Path(__file__).resolve().parents[2]
EVENTS = (Event(5, "neg_margin", 0.6), Event(8, "lr", 0.01))
OURS = {
    "contrastive, turned": {"events": EVENTS},
    "random triplets": {"loss": "TripletMarginLoss", "loss_options": {"triplets_per_anchor": 3}},
    "learned beta, sgd": {"loss": "MarginLoss", "loss_options": {"learn_beta": True}, "optimizer": "sgd"},
    "proxies, adamw": {"loss": "ProxyAnchorLoss", "dim": 3, "optimizer": "adamw", "per_class": 0},
    "class counts": {"loss": "DynamicArcFaceLoss"},
    "two views": {"pairing": "views", "loss": "VICRegLoss", "output": "batchnorm"},
    "free points": {"encoder": "free", "lr": 0.03, "output": "layernorm"},
    "miner": {"loss": "MultiSimilarityLoss", "miner": "MultiSimilarityMiner"},
    "semi": {"pairing": "semi", "label_fraction": 0.3, "loss": "NTXentLoss", "dim": 3},
    "continuous": {
        "data": "swiss_roll",
        "data_options": {},
        "pairing": "continuous",
        "delta": 0.1,
        "miner": "PairMarginMiner",
    },
    "cnn": {"data": "digits", "data_options": {}, "encoder": "cnn", "loss": "SupConLoss", "dim": 8},
}
THEIRS = {
    "temperature": {"loss": "NTXentLoss", "loss_options": {"temperature": 0.2}},
    "supervised": {"loss": "SupConLoss", "output": "none", "dim": 3},
    "radians": {"loss": "AngularLoss"},
    "two views": {"pairing": "views", "loss": "NTXentLoss", "dim": 8},
    "cosine": {"loss": "MultiSimilarityLoss", "dim": 8},
    "class weights, in columns there": {"loss": "NormalizedSoftmaxLoss", "output": "none"},
    "class weights with a margin": {"loss": "CosFaceLoss", "dim": 3},
    "proxies": {"loss": "ProxyNCALoss"},
    "Euclidean": {"loss_options": {"neg_margin": 0.8}},
    "Euclidean, unnormalised": {"loss": "TripletMarginLoss", "output": "none", "dim": 3},
    "Euclidean, fixed beta": {"loss": "MarginLoss"},
}


def losses_printed(code, monkeypatch):
    """Step to loss, as the script prints them, and its last line."""
    monkeypatch.setattr(sys, "argv", ["script.py"])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "script.py", "exec"), {"__name__": "__main__"})
    *rows, last = out.getvalue().splitlines()
    return {int(step): float(loss) for step, loss in map(str.split, rows)}, last


@pytest.mark.parametrize(("spelling", "kind"), [("ours", k) for k in OURS] + [("theirs", k) for k in THEIRS])
def test_the_script_repeats_the_recording(spelling, kind, small, finished, monkeypatch):
    config = small(steps=20, **(OURS if spelling == "ours" else THEIRS)[kind])
    recording = finished(config).recording
    script = (losslib_script if spelling == "ours" else pml_script)(config, recording)
    printed, last = losses_printed(script.code, monkeypatch)
    assert list(printed) == list(range(21))
    # the gradient of a Euclidean distance turns about between near points, and hinges open and close
    close = 3 * CLOSE if kind.startswith("Euclidean") else CLOSE
    for frame in recording.frames:
        assert printed[frame.step] == pytest.approx(frame.loss, rel=close, abs=close)
    assert last.startswith("largest difference from the recording in 16 losses: ")
    assert float(last.rpartition(" ")[2]) < close


def test_it_runs_by_itself_and_takes_another_number_of_steps(small, finished, tmp_path):
    config = small(steps=6)
    recording = finished(config).recording
    file = tmp_path / "run.py"
    file.write_text(losslib_script(config, recording).code)
    done = subprocess.run(
        [sys.executable, str(file), "3"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    *rows, last = done.stdout.splitlines()
    assert [line.split()[0] for line in rows] == ["0", "1", "2", "3"]
    assert "in 4 losses" in last


def test_without_a_recording_it_compares_with_nothing(small, monkeypatch):
    code = losslib_script(small(steps=2)).code
    assert "EXPECTED = {}" in code
    assert losses_printed(code, monkeypatch)[1].startswith("    2 ")


def test_writing_it_draws_nothing_from_the_generator_that_trains(small):
    before = torch.get_rng_state()
    for changes in ({}, {"encoder": "free"}, {"loss": "ProxyAnchorLoss"}):
        assert losslib_script(small(**changes)).code
        assert pml_script(small(**changes)).code
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"loss": "CosineEmbeddingLoss"}, "has no counterpart of CosineEmbeddingLoss"),
        ({"loss_options": {"squared": True}}, "has no counterpart of squared"),
        ({"loss": "DynamicSoftMarginLoss"}, "the second step fails"),
        ({"events": EVENTS}, "neg_margin was turned while it trained"),
        ({"miner": "BatchHardMiner"}, "choose by other conventions"),
        (
            {"data": "swiss_roll", "data_options": {}, "pairing": "continuous"},
            "no pairs by a continuous label",
        ),
    ],
)
def test_where_there_is_no_script_in_their_spelling_it_says_why(changes, words, small):
    script = pml_script(small(**changes))
    assert script.code == ""
    assert words in script.note


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "the script has one of its own that does not"),
        ({"loss": "NTXentLoss"}, "there the memory"),
        ({"loss": "ProxyAnchorLoss"}, "begin with the same class weights"),
        ({"loss": "SoftTripleLoss"}, "by its own rule"),
        ({"loss": "HistogramLoss"}, "index error where two normalised embeddings are equal"),
        ({"loss": "TripletMarginLoss", "loss_options": {"triplets_per_anchor": 2}}, "other triplets"),
    ],
)
def test_how_far_the_two_libraries_agree_is_said(changes, words, small):
    assert words in pml_script(small(**changes)).note


def test_the_command_line_trains_the_same(small, finished, tmp_path):
    config = small(steps=3, seed=7, events=(Event(2, "neg_margin", 0.5),))
    words = shlex.split(command(config))
    assert words[:3] == ["python", "-m", "lab.run"]
    out, file = tmp_path / "out.json", tmp_path / "run.npz"
    words[words.index("--json") + 1] = str(out)
    assert main([*words[3:], "--quiet", "--recording", str(file)]) == 0
    from lab.recording import Recording

    assert Recording.load(file).equals(finished(config).recording)
