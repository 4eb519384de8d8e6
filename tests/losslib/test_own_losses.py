"""`LOSSLAB_LOSSES`: a loss of somebody's own file stands in the catalogue beside ours."""

import pytest

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
        ("own_empty", "x = 1", "'own_empty' adds no loss: it defines no subclass"),
        ("own_broken", "import not_a_module", "'own_broken' cannot be imported .No module named"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(own_file, module, text, words):
    own_file(module, text)
    with pytest.raises(ParameterError, match=f"LOSSLAB_LOSSES: {words}"):
        catalog.losses()
