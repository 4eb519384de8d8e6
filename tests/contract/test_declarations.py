"""What a loss declares is complete, well formed, and true where it names another library."""

import inspect
import re

import pytest
import pytorch_metric_learning.losses

from losslib import catalog
from losslib.params import Param
from tests.contract.registered import EVERY_LOSS

PARAMS = [
    pytest.param(name, option, id=f"{name}-{option}")
    for name in EVERY_LOSS
    for option in catalog.get(name).params
]


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_the_equation_is_balanced_latex(name: str) -> None:
    equation = catalog.get(name).equation
    assert equation.strip()
    bare = equation.replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for sign in bare:
        depth += (sign == "{") - (sign == "}")
        assert depth >= 0, "a brace is closed that was never opened"
    assert depth == 0
    assert len(re.findall(r"\\left(?![a-z])", equation)) == len(re.findall(r"\\right(?![a-z])", equation))
    assert re.findall(r"\\begin\{(\w+)\}", equation) == re.findall(r"\\end\{(\w+)\}", equation)
    assert "$" not in equation
    assert "\n\n" not in equation


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_the_loss_says_what_it_is(name: str) -> None:
    cls = catalog.get(name)
    assert cls.title
    assert cls.title == cls.title.strip()
    assert re.fullmatch(r"[A-Z][^\n]*\.", cls.summary), "the summary is one sentence"
    assert not set(cls.summary) & set("$\\_^=<>"), "the summary has no symbols"
    assert cls.family in {"pair", "triplet", "softmax", "ranking", "proxy", "two-view"}
    assert cls.activity in {"hinge", "softmax"}
    assert len(inspect.getdoc(cls) or "") > 200
    assert "Example" in (inspect.getdoc(cls) or "")


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_the_paper_can_be_found(name: str) -> None:
    paper = catalog.get(name).paper
    assert re.fullmatch(r"https?://\S+\.\S+", paper.url)
    assert 1990 <= paper.year <= 2026
    assert paper.authors
    assert paper.title


def test_titles_are_unique() -> None:
    titles = [catalog.get(name).title for name in EVERY_LOSS]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("name", "option"), PARAMS)
def test_every_parameter_is_documented(name: str, option: str) -> None:
    param: Param = catalog.get(name).params[option]
    assert param.title
    assert param.meaning
    assert param.larger
    assert not param.meaning.endswith(".")
    assert not param.larger.endswith(".")


@pytest.mark.parametrize(("name", "option"), PARAMS)
def test_the_range_to_explore_is_valid_and_holds_the_default(name: str, option: str) -> None:
    param: Param = catalog.get(name).params[option]
    if param.explore is None:
        return
    assert all(param.valid.contains(value) for value in param.explore)
    if param.kind in ("float", "int"):
        low, high = param.explore
        assert low < high
        assert low <= param.default <= high


@pytest.mark.parametrize(("name", "option"), PARAMS)
def test_a_symbol_stands_in_the_equation(name: str, option: str) -> None:
    cls = catalog.get(name)
    symbol = cls.params[option].symbol
    if symbol:
        assert symbol in cls.equation


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_the_pml_spelling_exists_there(name: str) -> None:
    cls = catalog.get(name)
    if cls.pml is None:
        assert not hasattr(pytorch_metric_learning.losses, name), "it exists there under the same name"
        return
    theirs = getattr(pytorch_metric_learning.losses, cls.pml.class_name)
    taken = {name for base in theirs.__mro__ for name in inspect.signature(base.__init__).parameters}
    for option in (*cls.params, *cls.pml.renamed):
        spelt = cls.pml.renamed.get(option, option)
        assert spelt in taken or spelt == "", f"{cls.pml.class_name} has no option {spelt}"
    assert set(cls.pml.renamed) <= {*cls.params, *cls.required}


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_the_signature_lists_every_option(name: str) -> None:
    cls = catalog.get(name)
    shown = inspect.signature(cls.__init__).parameters
    for option, param in cls.params.items():
        assert option in shown
        assert shown[option].default == param.default
    for argument, param in cls.required.items():
        assert shown[argument].default is inspect.Parameter.empty
        assert param.meaning
    assert list(shown)[1 : 1 + len(cls.required)] == list(cls.required)
