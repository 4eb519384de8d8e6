"""`python -m lab.sweep`: a folder of results, resumed where it stopped; status codes and errors."""

import csv
import io
import json
import signal
import subprocess
import sys
import time

import pytest

from lab.recording import Recording
from lab.sweep import command
from lab.sweep.folder import Folder
from lab.sweep.plan import read_plan
from lab.sweep.ranking import ranking
from tests.lab.sweep.making import made

PLAN = {
    "base": {"data": "blobs", "blobs.points": 200, "batch": 32, "per_class": 4, "steps": 12},
    "vary": {"ContrastiveLoss.neg_margin": [0.5, 1.0]},
    "seeds": [0, 1],
}


def written(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**PLAN, **changes}), encoding="utf-8")
    return path


def table(folder):
    return list(csv.DictReader(io.StringIO((folder / "summary.csv").read_text(encoding="utf-8"))))


def test_a_sweep_writes_its_folder_and_goes_on_where_it_stopped(tmp_path, finished, capsys):
    config, out = written(tmp_path), tmp_path / "results"
    assert command.main([str(config), "--out", str(out), "--jobs", "1"]) == 0
    told = capsys.readouterr()
    assert "4 of 4 runs" in told.err
    lines = told.out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("1. negative margin ")
    rows = table(out)
    plan = read_plan(config.read_text(encoding="utf-8"))
    assert [(r["ContrastiveLoss.neg_margin"], r["seed"]) for r in rows] == [
        ("0.5", "0"),
        ("0.5", "1"),
        ("1.0", "0"),
        ("1.0", "1"),
    ]
    for row, cell in zip(rows, plan.cells, strict=True):
        alone = finished(cell.config).recording
        assert float(row["recall_at_1"]) == alone.curves()["recall_at_1"][-1]
        assert float(row["map_at_r"]) == alone.curves()["map_at_r"][-1]
        assert (row["state"], row["step"], row["reason"]) == ("finished", "12", "")
        assert Recording.load(out / row["file"]).equals(alone)
    # One run is lost, one damaged, and a value is new that makes the loss infinite: these are trained,
    # the others are not touched.
    files = [out / row["file"] for row in rows]
    files[0].unlink()
    files[1].write_bytes(b"half a file")
    kept = [file.stat().st_mtime_ns for file in files[2:]]
    config = written(tmp_path, vary={"ContrastiveLoss.neg_margin": [0.5, 1.0, 1e38]})
    assert command.main([str(config), "--out", str(out), "--jobs", "1"]) == 1
    told = capsys.readouterr()
    assert "2 of 6 runs are there already." in told.err
    assert [file.stat().st_mtime_ns for file in files[2:]] == kept
    again = table(out)
    assert [{**row, "ms_per_step": "", "seconds": ""} for row in again[:4]] == [
        {**row, "ms_per_step": "", "seconds": ""} for row in rows
    ]
    assert [row["state"] for row in again[4:]] == ["diverged", "diverged"]
    assert "change the options of the loss" in again[4]["reason"]
    assert f"negative margin 1e+38, seed 1: diverged. {again[5]['reason']}" in told.err
    assert "recall@1 none, MAP@R none (2 lost)" in told.out
    # With fewer values, what there is stays.
    fewer = written(tmp_path, vary={"ContrastiveLoss.neg_margin": [0.5]}, seeds=[0, 7])
    found = Folder(out, read_plan(fewer.read_text(encoding="utf-8"))).finished()
    assert [cell.config.seed for cell in found] == [0]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C reaches a Windows process otherwise")
def test_interrupted_it_keeps_what_has_ended(tmp_path):
    base = {**PLAN["base"], "steps": 4000}
    config = written(tmp_path, base=base, vary={"batch": [8, 64]}, seeds=[0])
    out = tmp_path / "out"
    # whoever started the tests may have ignored Ctrl-C, and a child inherits that
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "lab.sweep", config, "--out", out, "--jobs", "1"], stderr=subprocess.PIPE
        )
    finally:
        signal.signal(signal.SIGINT, former)
    deadline = time.monotonic() + 150
    while not (out / "summary.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == command.INTERRUPTED
    assert b"Interrupted: " in said
    assert b"Traceback" not in said
    assert len(table(out)) == sum(1 for _ in (out / "runs").glob("*.npz"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no such file"], "config: cannot read no such file (No such file or directory)"),
        ([], "the following arguments are required: config"),
        (["--jobs", "0"], "must be a whole number >= 1, got '0'; see --help"),
        (["--colour"], "unrecognized arguments: --colour; see --help"),
    ],
)
def test_a_bad_option_is_one_line_and_status_2(arguments, words, tmp_path, capsys):
    given = [str(written(tmp_path))] if arguments and arguments[0].startswith("--") else []
    assert command.main([*given, *arguments, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert told.err.startswith("error: ")
    assert words in told.err


def test_a_folder_that_cannot_be_written_is_said_before_training(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert command.main([str(written(tmp_path)), "--out", str(tmp_path / "file")]) == 2
    assert "--out: cannot write" in capsys.readouterr().err


def test_a_bad_config_is_one_line(tmp_path, capsys):
    config = written(tmp_path, vary={"ContrastiveLoss.neg_margin": ["wide"]})
    assert command.main([str(config), "--out", str(tmp_path / "out")]) == 2
    assert "neg_margin must be a finite number, got 'wide'" in capsys.readouterr().err


def test_a_line_of_the_ranking_has_mean_and_spread():
    done = [
        made("0.1", 0, 0.8, 0.5),
        made("0.1", 1, 0.9, 0.5, "collapsed"),
        made("0.2", 0, 0.5, 0.5, "failed"),
    ]
    told = [command.line(place, one) for place, one in enumerate(ranking(done), start=1)]
    assert told == [
        "1. learning rate 0.1: recall@1 0.850 (0.800 to 0.900), MAP@R 0.500 (1 collapsed)",
        "2. learning rate 0.2: recall@1 none, MAP@R none (1 lost)",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.2, "1 s"), (59.6, "60 s"), (150, "2 min"), (5400, "1.5 h"), (36000, "10.0 h")]
)
def test_a_duration_in_words(seconds, words):
    assert command.duration(seconds) == words
