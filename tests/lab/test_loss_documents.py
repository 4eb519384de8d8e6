"""The documents of a loss: nothing of its docstring is lost, and both snippets run and agree."""

import inspect
import re

import pytest
import torch

from lab.loss_documents import BEHAVIOUR, ORDER, losslib_snippet, paragraphs, pml_snippet
from losslib import catalog

PEERS = {name: cls for name, cls in catalog.losses().items() if cls.pml}
DRAWN = {name for name, cls in PEERS.items() if cls.required}  # proxies are drawn there in another order
OTHERWISE = {"AngularLoss", "InstanceLoss", "RankedListLoss", "SmoothAPLoss"}  # the class docstrings say how


@pytest.mark.parametrize("name", list(catalog.losses()))
def test_every_sentence_of_the_docstring_has_its_place(name):
    cls = catalog.get(name)
    found = paragraphs(cls)
    assert list(found) == [heading for heading in ORDER if heading in found]
    assert {BEHAVIOUR, "Example", "Shapes", "Returns", "Raises", "Terms", "Numerics"} <= set(found)
    words = re.findall(r"\w+", " ".join(inspect.getdoc(cls).split("\n\n")[1:]).lower())
    kept = re.findall(r"\w+", " ".join(found.values()).lower())
    assert len(words) - 6 <= len(kept) <= len(words)


def test_a_docstring_is_split_by_its_own_words():
    found = paragraphs(catalog.get("ContrastiveLoss"))
    assert found["Example"] == "Two points of one class at distance 0.5, margins 0 and 1: the loss is 0.5."
    assert found["Returns"].startswith("The mean of the positive pairs' hinges")
    assert found["Differences"].startswith("Differs from the paper: the hinges are not squared")
    assert found[BEHAVIOUR].startswith("A positive pair inside `pos_margin`")


def run(code, **names):
    space = dict(names)
    torch.manual_seed(0)
    exec(code, space)
    return space


@pytest.mark.parametrize("name", list(catalog.losses()))
def test_the_losslib_snippet_runs_with_every_option_at_its_default(name):
    cls = catalog.get(name)
    space = run(losslib_snippet(cls))
    assert type(space["loss_func"]) is cls
    assert space["embeddings"].grad is not None
    for option, param in cls.params.items():
        assert f"{option}=" in losslib_snippet(cls)
        made = getattr(space["loss_func"], option)
        if not isinstance(made, torch.Tensor):
            assert made == param.default


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")  # theirs
@pytest.mark.parametrize("name", list(PEERS))
def test_the_peer_s_snippet_runs_and_agrees_where_the_two_agree(name):
    cls = PEERS[name]
    code, said = pml_snippet(cls)
    ours = run(losslib_snippet(cls).replace("torch.randint(0, 8, (32,))", "torch.arange(32) // 4"))
    theirs = run(code, **{key: ours.get(key) for key in ("embeddings", "labels", "other_view")})
    assert type(theirs["loss_func"]).__name__ == cls.pml.class_name
    if name in DRAWN | OTHERWISE:
        assert name in DRAWN or "do not agree everywhere" in said
    else:
        torch.testing.assert_close(ours["loss"], theirs["loss"].reshape(()), rtol=1e-4, atol=1e-6)


def test_what_has_no_counterpart_is_left_out_and_said():
    code, said = pml_snippet(catalog.get("ContrastiveLoss"))
    assert "squared" not in code
    assert "It has no counterpart of `squared`." in said
    assert pml_snippet(catalog.get("GE2ELoss")) == (
        "",
        "pytorch-metric-learning has no counterpart of this loss.",
    )


@pytest.mark.parametrize(
    ("name", "differs"),
    [("IntraPairVarianceLoss", False), ("VICRegLoss", False), ("ProxyNCALoss", False), ("NCALoss", True)],
)
def test_what_is_as_it_is_there_is_no_difference(name, differs):
    assert ("do not agree everywhere" in pml_snippet(catalog.get(name))[1]) == differs


def test_angles_are_in_degrees_there():
    code, said = pml_snippet(catalog.get("ArcFaceLoss"))
    assert "margin=28.6478898" in code  # 0.5 radians
    assert "There `margin` is in degrees." in said
    assert "m=0.4" in pml_snippet(catalog.get("CircleLoss"))[0]
