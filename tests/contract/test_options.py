"""Every declared option of every loss, distance and reducer: its default, its ends, and what lies outside."""

import math
from typing import Any

import pytest
import torch

import losslib.distances
import losslib.reducers
from losslib import catalog
from losslib.errors import ParameterError
from tests.contract.registered import EVERY_LOSS, SIZES


def classes() -> list[type]:
    """Losses, distances and reducers that declare options."""
    others = [
        value
        for module in (losslib.distances, losslib.reducers)
        for value in (getattr(module, name) for name in dir(module))
        if isinstance(value, type) and value.__module__.startswith("losslib.")
    ]
    found = [catalog.get(name) for name in EVERY_LOSS] + others
    return [cls for cls in dict.fromkeys(found) if getattr(cls, "params", None)]


def company(cls: type, option: str, value: Any) -> dict[str, Any]:
    """The option with what it needs beside it to make sense."""
    if cls.__name__ == "ThresholdReducer" and value is None:
        return {option: None, "high" if option == "low" else "low": 0.5}
    return {**required(cls), option: value}


def required(cls: type) -> dict[str, Any]:
    """The arguments without a default."""
    return {name: SIZES[name] for name in getattr(cls, "required", {})}


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
    made = cls(**({"low": 0.5} if cls.__name__ == "ThresholdReducer" else required(cls)))
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


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_an_unknown_option_is_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}.*margn"):
        catalog.get(name)(**required(catalog.get(name)), margn=1.0)


@pytest.mark.parametrize("name", EVERY_LOSS)
def test_a_part_of_the_wrong_kind_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match="distance"):
        catalog.get(name)(**required(catalog.get(name)), distance="cosine")
    with pytest.raises(TypeError, match="reducer"):
        catalog.get(name)(**required(catalog.get(name)), reducer=math.fsum)


REQUIRED = [
    pytest.param(name, argument, value, id=f"{name}-{argument}-{value!r}")
    for name in EVERY_LOSS
    for argument, param in catalog.get(name).required.items()
    for value in param.valid.examples_out()
]


@pytest.mark.parametrize(("name", "argument", "value"), REQUIRED)
def test_a_required_argument_is_checked(name: str, argument: str, value: Any) -> None:
    cls = catalog.get(name)
    with pytest.raises(ParameterError, match=f"{name}: {argument} must be"):
        cls(**{**required(cls), argument: value})


@pytest.mark.parametrize("name", [name for name in EVERY_LOSS if catalog.get(name).required])
def test_a_required_argument_is_missed_and_cannot_change(name: str) -> None:
    cls = catalog.get(name)
    with pytest.raises(TypeError, match=f"{name}: must be given {' and '.join(cls.required)}"):
        cls()
    made = cls(**required(cls))
    for argument, value in required(cls).items():
        assert getattr(made, argument) == value
        with pytest.raises(ParameterError, match="fixed at construction"):
            setattr(made, argument, (1, 2) if isinstance(value, tuple) else value + 1)
