"""The command line, as a person starts it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.command import listing, main, rows
from lab.config import RunConfig
from lab.frame import Frame
from lab.recording import Recording
from lab.run import Run

FAST = ["--data", "blobs", "--set", "blobs.points=400", "--batch", "32", "--steps", "12"]


def strict(text: str) -> Any:
    """JSON without NaN or Infinity, which are not JSON."""

    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_it_writes_config_frames_and_final(tmp_path: Path) -> None:
    target, recording = tmp_path / "out.json", tmp_path / "run.npz"
    command = [sys.executable, "-m", "lab.run", *FAST, "--set", "neg_margin=0.8", "--set", "classes=3"]
    command += ["--loss", "ContrastiveLoss", "--encoder", "mlp", "--dim", "3", "--seed", "4"]
    command += ["--json", str(target), "--recording", str(recording)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12/12" in done.stderr
    assert "recall at 1" in done.stdout
    out = strict(target.read_text(encoding="utf-8"))
    config = RunConfig.from_dict(out["config"])
    assert config == RunConfig(
        data="blobs",
        data_options={"points": 400, "classes": 3},
        loss_options={"neg_margin": 0.8},
        encoder="mlp",
        dim=3,
        batch=32,
        steps=12,
        seed=4,
    )
    assert [frame["step"] for frame in out["frames"]] == [*range(11), 12]
    for name in ("step", "loss", "active_share", "recall_at_1", "map_at_r"):
        assert name in out["frames"][0]
    assert [f["step"] for f in out["frames"] if f["map_at_r"] is not None] == [0, 10, 12]
    assert out["final"]["recall_at_1"] == out["frames"][-1]["recall_at_1"]
    # the same numbers as the engine gives in this process, and as the run file holds
    run = Run(config)
    for _ in run:
        pass
    assert rows(run.recording) == out["frames"]
    assert Recording.load(recording).equals(run.recording)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dim", "1"], "dim must be a whole number from 2 to 512, got 1"),
        (["--loss", "ContrastivLoss"], "did you mean ContrastiveLoss"),
        (["--data", "mnits"], "did you mean mnist"),
        (["--colour", "red"], "unrecognized arguments: --colour red; see --help"),
        (["--dim"], "expected one argument"),
        (["--set", "neg_margin"], "--set takes NAME=VALUE, got 'neg_margin'"),
        (["--set", "foo=1"], "neither ContrastiveLoss nor mnist has an option 'foo'"),
        (["--set", "neg_margin=wide"], "neg_margin must be a finite number, got 'wide'"),
        (
            ["--set", "TripletMarginLoss.margin=1"],
            "option of TripletMarginLoss, but the loss is ContrastiveLoss",
        ),
        (["--batch", "3001"], "batch must be at most the 3000 training points there are, got 3001"),
        (["--per-class", "200"], "per_class must be at most the batch size 128"),
        (["--data", "blobs", "--set", "classes=1"], "classes must be a whole number from 2 to 40, got 1"),
        (["--data", "moons", "--encoder", "cnn"], "the CNN needs images, and moons has none"),
        (["--events", "4:squared=1"], "'squared' cannot change while it trains"),
        (["--events", "9999:lr=0.1"], "--events: step 9999 is after the last step, 300"),
        (["--events", ","], "events: expected step:name=value, such as 40:lr=0.001, got ','"),
        (["--pairing", "continuous"], "needs a continuous label, and mnist has none; choose data=swiss_roll"),
        (["--pairing", "views", "--encoder", "free"], "free points have no input to augment"),
        (["--miner", "BatchHardMine"], "did you mean BatchHardMiner"),
        (["--set", "type_of_triplets=all"], "neither ContrastiveLoss nor mnist has an option"),
        (
            ["--miner", "TripletMarginMiner", "--set", "margin=wide"],
            "margin must be a finite number, got 'wide'",
        ),
        (["--label-fraction", "2"], "label_fraction must be a number >= 0 and <= 1, got 2"),
        (["--json", "/no/such/folder/out.json"], "--json: there is no folder /no/such/folder"),
        (["--json", "."], "--json: cannot write . (Is a directory)"),
        (["--recording", "/no/such/folder/run.npz"], "--recording: there is no folder /no/such/folder"),
        (["--loss", "VICRegLoss"], "VICRegLoss needs two views of each sample"),
        (["--steps", "1e3"], "steps must be a whole number"),
    ],
)
def test_a_bad_option_is_one_line_and_status_2(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(options) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("error: ")
    assert words in shown.err


def test_a_bad_option_from_the_shell_shows_no_traceback() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lab.run", "--dim", "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: run: dim must be a whole number from 2 to 512, got 1\n"


def test_pairing_and_miner_reach_the_run_and_the_file_has_the_name_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, recording = tmp_path / "out.json", tmp_path / "run.zip"
    options = ["--data", "swiss_roll", "--set", "points=400", "--batch", "32", "--steps", "2", "--quiet"]
    options += ["--pairing", "continuous", "--delta", "0.2", "--miner", "BatchEasyHardMiner"]
    options += ["--set", "pos_strategy=hard", "--json", str(target), "--recording", str(recording)]
    assert main(options) == 0
    config = RunConfig.from_dict(strict(target.read_text(encoding="utf-8"))["config"])
    assert (config.pairing, config.delta, config.miner) == ("continuous", 0.2, "BatchEasyHardMiner")
    assert config.miner_options == (("pos_strategy", "hard"),)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.json", "run.zip"]
    # about 2 delta - delta^2 of the pairs of an even spread from 0 to 1 are within delta
    assert "(chance 0.36)" in capsys.readouterr().out
    assert Recording.load(recording).chance == pytest.approx(0.36, abs=0.01)


def test_divergence_is_said_and_the_json_stays_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.json"
    options = [*FAST, "--lr", "1e20", "--optimizer", "sgd", "--output", "none", "--quiet"]
    assert main([*options, "--json", str(target)]) == 1
    out = strict(target.read_text(encoding="utf-8"))
    assert "lower the learning rate" in out["final"]["reason"]
    assert "lower the learning rate" in capsys.readouterr().err
    assert out["final"]["step"] <= out["final"]["steps"] < 12


def test_the_list_names_data_sets_losses_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert shown.strip() == listing()
    for words in (
        "mnist: 5,000 handwritten",
        "--set blobs.classes: a whole number from 2 to 40 (default 6)",
        "--set ContrastiveLoss.neg_margin: a finite number (default 1)",
        "--lr: a number > 0",
    ):
        assert words in shown


def test_help_works(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "--per-class" in capsys.readouterr().out


def test_ctrl_c_keeps_what_was_trained_and_shows_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Run.step

    def interrupted(run: Run, look: bool = False) -> Frame | None:
        if run.steps_done == 3:
            raise KeyboardInterrupt
        return step(run, look)

    monkeypatch.setattr(Run, "step", interrupted)
    target = tmp_path / "out.json"
    assert main([*FAST, "--quiet", "--json", str(target)]) == 130
    assert [frame["step"] for frame in strict(target.read_text(encoding="utf-8"))["frames"]] == [0, 1, 2, 3]
    assert capsys.readouterr().err == "Interrupted at step 3 of 12.\n"


def test_a_refused_command_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    assert main([*FAST, "--quiet", "--json", str(target), "--recording", str(tmp_path)]) == 2
    assert list(tmp_path.iterdir()) == []
