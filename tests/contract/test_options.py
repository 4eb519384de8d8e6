"""Every declared option of every loss, distance and reducer: its default, its ends, and what lies outside."""

import math
from typing import Any

import pytest
import torch

import losslib.distances
import losslib.reducers
from losslib import catalog
from losslib.errors import ParameterError
from tests.contract.registered import NAMES


def classes() -> list[type]:
    """Losses, distances and reducers that declare options."""
    others = [
        value
        for module in (losslib.distances, losslib.reducers)
        for value in (getattr(module, name) for name in dir(module))
        if isinstance(value, type) and value.__module__.startswith("losslib.")
    ]
    found = [catalog.get(name) for name in NAMES] + others
    return [cls for cls in dict.fromkeys(found) if getattr(cls, "params", None)]


def company(cls: type, option: str, value: Any) -> dict[str, Any]:
    """The option with what it needs beside it to make sense."""
    if cls.__name__ == "ThresholdReducer" and value is None:
        return {option: None, "high" if option == "low" else "low": 0.5}
    return {option: value}


OPTIONS = [(cls, option) for cls in classes() for option in cls.params]  # type: ignore[attr-defined]
INSIDE = [
    pytest.param(cls, option, value, id=f"{cls.__name__}-{option}-{value}")
    for cls, option in OPTIONS
    for value in cls.params[option].valid.examples_in()
]
OUTSIDE = [
    pytest.param(cls, option, value, id=f"{cls.__name__}-{option}-{value!r}")
    for cls, option in OPTIONS
    for value in cls.params[option].valid.examples_out()
]


def test_there_are_options_to_try() -> None:
    assert len(INSIDE) > 40
    assert len(OUTSIDE) > 60


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("cls", "option", "value"), INSIDE)
def test_a_value_inside_is_taken_and_kept(cls: type, option: str, value: Any) -> None:
    made = cls(**company(cls, option, value))
    kept = getattr(made, option)
    if isinstance(kept, torch.Tensor):  # beta is a tensor of the module, in float32
        assert kept.detach().tolist() == [pytest.approx(value, rel=1e-6)]
    else:
        assert kept == value


@pytest.mark.parametrize(("cls", "option", "value"), OUTSIDE)
def test_a_value_outside_is_refused_when_built_with_one_telling_line(
    cls: type, option: str, value: Any
) -> None:
    with pytest.raises(ParameterError) as caught:
        cls(**company(cls, option, value))
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(cls.__name__)
    assert option in message
    assert repr(value) in message


@pytest.mark.parametrize(("cls", "option", "value"), OUTSIDE)
def test_a_value_outside_is_refused_when_set_later(cls: type, option: str, value: Any) -> None:
    made = cls(low=0.5) if cls.__name__ == "ThresholdReducer" else cls()  # type: ignore[call-arg]
    before = getattr(made, option)
    with pytest.raises(ParameterError, match=option):
        setattr(made, option, value)
    after = getattr(made, option)
    assert after is before or after == before


@pytest.mark.parametrize(("cls", "option"), OPTIONS)
def test_text_reads_back_as_the_value(cls: type, option: str) -> None:
    param = cls.params[option]  # type: ignore[attr-defined]
    for value in (param.default, *param.valid.examples_in(), *(param.explore or ())):
        again = param.parse(param.format(value), cls.__name__)
        assert again == value
        assert type(again) is type(param.check(value, cls.__name__))


@pytest.mark.parametrize("text", ["", "abc", "nan", "1e", "0x10", "[1]"])
@pytest.mark.parametrize(("cls", "option"), OPTIONS)
def test_text_that_is_no_value_is_refused(cls: type, option: str, text: str) -> None:
    with pytest.raises(ParameterError, match=option):
        cls.params[option].parse(text, cls.__name__)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}.*margn"):
        catalog.get(name)(margn=1.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_part_of_the_wrong_kind_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="distance"):
        catalog.get(name)(distance="cosine")
    with pytest.raises(TypeError, match="reducer"):
        catalog.get(name)(reducer=math.fsum)
