"""By how much pytorch-metric-learning differs: recorded, said on the pages, and measured again here."""

import pytest

from lab import peer_values
from lab.config import RunConfig
from lab.loss_documents import pml_snippet
from lab.peer_values import Compared, Pair, alike, main, recorded, sentence
from lab.script import agreement
from losslib import catalog

SIZE = "On a fixed batch (64 embeddings of 128 numbers in 8 classes, default options, double precision)"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # theirs
def test_what_is_recorded_is_what_the_library_gives(capsys):
    pytest.importorskip("pytorch_metric_learning")
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == "all as recorded\n"


def test_a_value_that_has_moved_is_named(capsys, monkeypatch):
    same = Compared(Pair(1.0, 1.0), Pair(1.0, 1.0))
    moved = Compared(Pair(1.0, 1.0), Pair(1.0, 2.0))
    monkeypatch.setattr(peer_values, "measured", lambda: ("peer 3", {"NCALoss": moved, "NTXentLoss": same}))
    monkeypatch.setattr(
        peer_values,
        "recorded",
        lambda: ("peer 2", dict.fromkeys(("NCALoss", "NTXentLoss", "SupConLoss"), same)),
    )
    assert main(["--check"]) == 1
    gone, changed = capsys.readouterr().out.splitlines()
    assert gone == f"SupConLoss: {same} is now None"
    assert changed == f"NCALoss: {same} is now {moved}"


def test_the_size_of_a_difference_is_relative_to_the_larger():
    assert Pair(1.0, 4.0).difference == Pair(4.0, 1.0).difference == 0.75
    assert Pair(0.0, 0.0).difference == 0.0
    one = Pair(1.0, 2.0)
    assert alike(Compared(one, one), Compared(Pair(1.0005, 2.0), one))
    assert not alike(Compared(one, one), Compared(one, Pair(1.002, 2.0)))


def test_each_kind_of_difference_is_said(monkeypatch):
    far, near, same = Pair(1.0, 4.0), Pair(0.5, 0.50005), Pair(2.0, 2.0000001)
    found = {"A": Compared(far, near), "B": Compared(near, far), "C": Compared(same, same)}
    found |= {"E": Compared(far, same)}
    monkeypatch.setattr(peer_values, "recorded", lambda: ("peer 2", found))
    assert sentence("A") == f"{SIZE} losslib gives 1 and peer 2 4, a relative difference of 75 %."
    assert sentence("B") == f"{SIZE} losslib gives 0.5 and peer 2 0.50005, a relative difference of 1.0e-04."
    assert sentence("C") == f"{SIZE} peer 2 gives the same value to a millionth, 2."
    assert sentence("D") == ""
    assert sentence("E") == (
        f"{SIZE} losslib gives 1 and peer 2 4, a relative difference of 75 %; of the same embeddings at "
        "length 1 peer 2 gives the same value to a millionth, 2."
    )


@pytest.mark.parametrize("name", ["AngularLoss", "InstanceLoss", "RankedListLoss", "SmoothAPLoss"])
def test_the_pages_say_by_how_much(name):
    """Where the conventions differ the snippet's note and the script's hold the figure."""
    assert recorded()[1][name].plain.difference > 1e-6
    assert sentence(name) in pml_snippet(catalog.get(name))[1]
    assert sentence(name) in agreement(RunConfig(loss=name))


@pytest.mark.parametrize(
    ("loss", "output", "close"),
    [
        ("AngularLoss", "l2", True),  # it leaves negatives at their own length, which is 1 here
        ("AngularLoss", "none", False),
        ("RankedListLoss", "l2", False),
        ("TripletMarginLoss", "none", True),
    ],
)
def test_no_closeness_is_promised_where_the_values_differ(loss, output, close):
    assert (
        "agree with the recording to about 1e-5" in agreement(RunConfig(loss=loss, output=output))
    ) == close
