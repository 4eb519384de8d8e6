"""`python -m losslib.check`: what it prints and how it ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from losslib.check.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
PLAIN = "tests.losslib.plain_losses"
WRONG = "tests.losslib.wrong_losses"


def test_a_right_loss_ends_with_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{PLAIN}:Contrastive", "--set", "neg_margin=0.7", "--only", "collapse"]) == 0
    assert capsys.readouterr().out.strip().endswith("Contrastive: passed (1 passed, 0 failed, 0 skipped)")


def test_a_failed_check_ends_with_status_1_and_says_what_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{WRONG}:TemperatureTwice", "--only", "temperature"]) == 1
    printed = capsys.readouterr().out
    assert "the loss grew 4.000 times" in printed
    assert "expected: 2 times" in printed


def test_json_holds_passed_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{WRONG}:SelfPairsKept", "--only", "self pairs", "--json"]) == 1
    written = json.loads(capsys.readouterr().out)
    assert written["passed"] is False
    assert [(check["name"], check["status"]) for check in written["checks"]] == [("self pairs", "failed")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["no.such.module:Loss"], "cannot import no.such.module"),
        ([f"{PLAIN}:Nothing"], "has no 'Nothing'"),
        ([f"{PLAIN}:Contrastive", "--set", "margin=1"], "unexpected keyword argument 'margin'"),
        ([f"{PLAIN}:Contrastive", "--set", "margin"], "--set takes option=value"),
        (
            [f"{PLAIN}:Pairwise"],
            "AttributeError: 'Pairwise' object has no attribute 'values' (plain_losses.py",
        ),
        (
            [f"{WRONG}:NeedsWeights"],
            "required positional argument: 'weights'; a loss is called with",
        ),
        ([f"{WRONG}:CannotBeBuilt"], "cannot be built: KeyError: 'table' (wrong_losses.py, line"),
        ([f"{PLAIN}:NTXent", "--only", "speed"], "no check named 'speed'"),
    ],
)
def test_a_loss_that_cannot_be_loaded_or_called_ends_with_status_2_and_one_line(
    arguments: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert reason in printed.err
    assert "importlib" not in printed.err
    assert "__init__.py" not in printed.err
    assert printed.err.count("\n") == 1


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "losslib.check", f"{WRONG}:SelfPairsKept", "--only", "self pairs"],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert "failed   self pairs" in done.stdout


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="this system has no SIGPIPE")
def test_a_reader_that_has_seen_enough_ends_it_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "losslib.check", "--list"]
    done = subprocess.run(
        command, cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=120
    )
    os.close(writer)
    assert done.stderr == ""
    assert done.returncode == -signal.SIGPIPE


def test_the_checks_are_listed_with_their_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "self pairs: a row compared with itself" in capsys.readouterr().out


def test_one_cause_of_many_failures_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{WRONG}:FixedBatch"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("IndexError: ") == 1
    assert "the same in 3 other checks: float64, half precision, autocast" in printed


def test_a_loss_of_single_precision_fails_one_check_and_not_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{WRONG}:SinglePrecisionOnly", "--json"]) == 1
    written = json.loads(capsys.readouterr().out)
    failed = [check for check in written["checks"] if check["status"] == "failed"]
    assert [check["name"] for check in failed] == ["float64"]
    assert "same dtype" in failed[0]["got"]
    assert "wrong_losses.py, line" in failed[0]["got"]


def test_a_function_is_called_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"{WRONG}:mean_square", "--only", "rotation"]) == 0
    assert capsys.readouterr().out.strip().endswith("mean_square: passed (1 passed, 0 failed, 0 skipped)")
