"""The same batch in two spellings: what agrees, what differs and why."""

import json
import math
import subprocess
import sys

import pytest

from benchmarks import parity as bench
from lab.parity import AGREE, Parity, parity, value_of
from losslib import catalog
from losslib.errors import ParameterError

# where LOSSES.md names another convention
DIFFERENT = {"AngularLoss", "InstanceLoss", "RankedListLoss", "SmoothAPLoss"}


@pytest.mark.parametrize("name", ["ContrastiveLoss", "NTXentLoss", "CircleLoss", "TripletMarginLoss"])
def test_they_agree_on_the_common_losses(name: str) -> None:
    found = parity(name)
    assert found.agrees
    assert found.ours == pytest.approx(found.theirs, rel=1e-9)


@pytest.mark.parametrize("name", sorted(DIFFERENT))
def test_a_difference_comes_with_its_convention(name: str) -> None:
    found = parity(name)
    assert found.difference > AGREE
    assert not found.agrees
    assert found.said.startswith("Differs from")


def test_every_loss_has_a_row_with_a_value_or_a_reason() -> None:
    for name, cls in catalog.losses().items():
        if cls.required or cls.needs:
            found = parity(name)
            assert math.isnan(found.ours)
            assert found.said
    with pytest.raises(ParameterError, match="NTXentLoss"):
        parity("NTXentLos")


def test_a_missing_value_agrees_with_nothing() -> None:
    assert not Parity("A", "A", 1.0, math.nan, "").agrees
    assert Parity("A", "A", 1.0, 1.0 + 1e-9, "").agrees


def test_a_snippet_is_computed_on_the_batch_given() -> None:
    import torch

    code = (
        "import torch\nfrom losslib import losses\n\nloss_func = losses.ContrastiveLoss()\nembeddings = 1\n"
    )
    code += "labels = 2\nloss = loss_func(embeddings, labels)\nloss.backward()"
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    # a positive pair at a right angle: distance sqrt 2, and no negatives
    assert value_of(code, rows, torch.zeros(2)) == pytest.approx(math.sqrt(2))


def test_the_command_names_loop_peer_and_convention(capsys: pytest.CaptureFixture[str], tmp_path) -> None:
    file = tmp_path / "rows.json"
    assert bench.main(["ContrastiveLoss", "InstanceLoss", "--json", str(file)]) == 0
    first, second = json.loads(file.read_text())
    assert first["losslib"] == pytest.approx(first["loop"], rel=1e-9)
    assert first["convention"] == ""
    assert second["convention"].startswith("Differs from")
    assert "| ContrastiveLoss | 1.00" in capsys.readouterr().out
    assert bench.main(["NoSuchLoss"]) == 2


def test_the_peer_loads_no_more_of_scipy_than_it_uses():
    code = (
        "import sys; from lab.parity import parity; "
        "found = parity('TripletMarginLoss'); "
        "print(found.agrees, 'scipy.stats._stats_py' in sys.modules); "
        "import scipy.stats; print(scipy.stats.rankdata([3.0, 1.0, 2.0]).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True False\n[3.0, 1.0, 2.0]\n", "")
