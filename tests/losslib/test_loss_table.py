"""The table of all losses: complete, from the declarations, and fresh in the documents."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from losslib import catalog
from losslib.loss_table import COLUMNS, main, table

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "LOSSES.md"


def test_the_document_is_not_stale():
    assert main(["--check", str(DOCUMENT)]) == 0, "run python -m losslib.catalog --write docs/LOSSES.md"


def test_every_loss_has_one_whole_row():
    lines = table().splitlines()[2:]
    assert {re.findall(r"`(\w+)`", line)[0] for line in lines} == set(catalog.losses())
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table().splitlines()} == {len(COLUMNS) + 1}


def test_a_row_says_what_is_declared():
    [line] = [line for line in table().splitlines() if line.startswith("| `ContrastiveLoss`")]
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert cells[1:3] == ["Contrastive", "pair"]
    assert "Hadsell, Chopra, LeCun (2006)](http://yann.lecun.com" in cells[3]
    assert cells[4:6] == ["`LpDistance()`", "`AvgNonZeroReducer()`"]
    assert "`neg_margin` (1; a finite number)" in cells[6]
    assert cells[7] == "`ContrastiveLoss` (no `squared`)"
    [proxies] = [line for line in table().splitlines() if line.startswith("| `CosFaceLoss`")]
    assert "`num_classes` (must be given; a whole number >= 1)" in proxies


def test_a_stale_block_is_told_and_made_anew(tmp_path, capsys):
    file = tmp_path / "losses.md"
    file.write_text("before\n<!-- losses -->\nold\n<!-- /losses -->\nafter\n", encoding="utf-8")
    assert main(["--check", str(file)]) == 1
    assert "stale" in capsys.readouterr().err
    assert main(["--write", str(file)]) == 0
    assert main(["--check", str(file)]) == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert table() in text


@pytest.mark.parametrize("text", [None, "no marks", "<!-- losses -->\nopen"])
def test_a_file_that_cannot_be_used_is_said_in_one_line(text, tmp_path, capsys):
    file = tmp_path / "losses.md"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    assert main(["--check", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_command_needs_torch_alone():
    code = (
        "import runpy, sys\nsys.argv = ['catalog']\n"
        "try: runpy.run_module('losslib.catalog', run_name='__main__')\n"
        "except SystemExit as end: assert not end.code\n"
        "print('loaded', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.startswith("| Class | Title |")
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded & {"streamlit", "plotly", "sklearn", "pandas", "datasets", "lab", "ui"} == set()
