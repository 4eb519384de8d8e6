"""`LOSSLAB_LOSSES`: a loss of somebody's own file stands in the catalogue beside ours."""

import json

import pytest
import torch

from losslib import catalog
from losslib.errors import ParameterError

OWN = """
from losslib.losses.contrastive_loss import ContrastiveLoss

class {name}(ContrastiveLoss):
    title = "My own"
"""


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """Puts a module of one's own on the path and names it in the environment."""

    def write(module, text):
        (tmp_path / f"{module}.py").write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.setenv("LOSSLAB_LOSSES", f" {module} ,")
        catalog.losses.cache_clear()

    yield write
    monkeypatch.undo()
    catalog.losses.cache_clear()


def test_a_loss_of_ones_own_is_in_the_catalogue(own_file):
    before = set(catalog.losses())
    own_file("own_loss_file", OWN.format(name="MyOwnLoss"))
    assert set(catalog.losses()) - before == {"MyOwnLoss"}
    assert list(catalog.losses()) == sorted(catalog.losses())
    assert catalog.get("MyOwnLoss").title == "My own"


@pytest.mark.parametrize(
    ("module", "text", "words"),
    [
        (
            "own_taken",
            OWN.format(name="ContrastiveLoss"),
            "'own_taken' adds no loss: ContrastiveLoss is taken",
        ),
        ("own_empty", "x = 1", "'own_empty' adds no loss: it defines no torch.nn.Module"),
        ("own_broken", "import not_a_module", "'own_broken' cannot be imported .No module named"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(own_file, module, text, words):
    own_file(module, text)
    with pytest.raises(ParameterError, match=f"LOSSLAB_LOSSES: {words}"):
        catalog.losses()


PLAIN = '''
import torch
from torch import nn

class HalfSquaredLoss(nn.Module):
    """Half the squared distance of neighbours in the batch.

    More about it.
    """

    def __init__(self, margin=0.25, num_classes=None, temperature=0.5, squared=True, {more}):
        super().__init__()
        self.margin, self.temperature, self.squared = margin, temperature, squared

    def forward(self, embeddings, labels):
        gap = (embeddings[1:] - embeddings[:-1]).square().sum(1)
        return (gap - self.margin).clamp_min(0).mean() / self.temperature
'''


def test_a_plain_module_is_a_loss_with_the_options_of_its_signature(own_file):
    own_file("own_plain", PLAIN.replace(", {more}", ""))
    cls = catalog.get("HalfSquaredLoss")
    assert cls.title == "Half Squared"
    assert cls.summary == "Half the squared distance of neighbours in the batch."
    assert list(cls.params) == ["margin", "temperature", "squared"]
    assert cls.params["temperature"].explore == pytest.approx((0.05, 5.0))
    loss = cls(margin=1.0)
    rows = torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]], dtype=torch.float64, requires_grad=True)
    value = loss(rows, torch.tensor([0, 1, 1]))
    # gaps 9 and 1: (8 + 0) / 2 / 0.5
    assert value.item() == pytest.approx(8.0)
    value.backward()
    assert rows.grad[0].tolist() == pytest.approx([-6.0, 0.0])
    loss.margin = 0.0
    assert loss(rows, torch.tensor([0, 1, 1])).item() == pytest.approx(10.0)
    with pytest.raises(ParameterError, match="temperature must be a number > 0"):
        cls(temperature=-1.0)
    with pytest.raises(ValueError, match="embeddings and labels alone"):
        loss(rows, None, (torch.tensor([0]), torch.tensor([1]), torch.tensor([2])))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (PLAIN.replace("{more}", "other=None").replace("margin=0.25", "margin"), "'margin' has no default"),
        (
            PLAIN.replace("{more}", "other=None").replace("embeddings, labels)", "embeddings)"),
            "its forward takes",
        ),
        (
            PLAIN.replace("{more}", "other=None").replace("labels)", "labels, teacher)"),
            r"its forward takes \(embeddings, labels, teacher\)",
        ),
    ],
)
def test_a_module_that_cannot_be_called_says_why(own_file, text, words):
    own_file(f"own_wrong_{abs(hash(words)) % 1000}", text)
    with pytest.raises(ParameterError, match=words):
        catalog.losses()


def test_one_class_can_be_named_and_trained_by_the_command_line(own_file, tmp_path, capsys, monkeypatch):
    own_file("own_run", PLAIN.replace(", {more}", "").replace("HalfSquaredLoss", "RunByName"))
    monkeypatch.setenv("LOSSLAB_LOSSES", "")
    catalog.losses.cache_clear()
    from lab.command import main
    from lab.settings import settings

    try:
        given = ["--loss", "own_run:RunByName", "--data", "blobs", "--set", "blobs.points=80", "--steps", "3"]
        out = tmp_path / "out.json"
        status = main([*given, "--set", "margin=0.5", "--batch", "16", "--json", str(out), "--quiet"])
        assert status == 0, capsys.readouterr().err
        assert json.loads(out.read_text())["config"]["loss_options"]["margin"] == 0.5
        assert main(["--loss", "own_run:NoSuch"]) == 2
        assert "has no class 'NoSuch'" in capsys.readouterr().err
    finally:
        settings.cache_clear()


UNNAMED = """
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x

class SoftPull(nn.Module):
    def __init__(self, margin: float = 0.2):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, labels):
        return (embeddings.pow(2).sum() - self.margin).relu()
"""


def test_a_module_of_any_name_counts_where_none_is_called_a_loss(own_file):
    own_file("own_unnamed", UNNAMED)
    assert catalog.get("SoftPull").params["margin"].default == 0.2
    assert "Block" not in catalog.losses()
    own_file("own_uncallable", UNNAMED.partition("class SoftPull")[0])
    with pytest.raises(ParameterError, match=r"Block: its forward takes \(x\)"):
        catalog.losses()
