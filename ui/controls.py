"""Controls made from declared parameters. A control's key is its name in the link and on the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from lab.settings import in_words, sentence
from losslib.errors import ParameterError
from losslib.params import Integer, Param
from ui.places import place

MANTISSAS = (1, 1.5, 2, 3, 5, 7)
COARSE = 20  # times the range worth exploring
SPAN = "span of "


def control(
    param: Param, key: str, choices: Sequence[Any] = (), on_change: Callable[[], None] | None = None
) -> str:
    """Draws the control of a parameter, bound to the link, and returns its value as the link spells it.

    Args:
        param: the declaration.
        key: the setting's full name, such as "ContrastiveLoss.neg_margin".
        choices: what is offered, where that depends on other settings.
        on_change: called when a person changes the value.
    """
    label = param.title
    bound: dict[str, Any] = {"key": key, "help": help_text(param), "on_change": on_change}
    offered = list(choices) or offered_values(param, key)
    value: Any
    if param.kind == "bool":
        value = st.toggle(label, param.default, bind="query-params", **bound)
    elif offered and is_logarithmic(param):
        start = param.default
        value = st.select_slider(
            label, offered, start, format_func=speller(param, key), bind="query-params", **bound
        )
    elif offered:
        place = offered.index(param.default)
        value = st.selectbox(
            label, offered, place, format_func=speller(param, key), bind="query-params", **bound
        )
    elif param.kind == "float" and param.explore is not None and is_coarse(param, *span(param, key)):
        value = number(param, label, bound)
    elif param.kind == "float" and param.explore is not None:
        low, high = span(param, key)
        step = param.step or nice_step(low, high)
        value = st.slider(
            label, low, high, float(param.default), step, format="%g", bind="query-params", **bound
        )
    elif param.kind in ("int", "float"):
        value = number(param, label, bound)
    else:
        return text(param, label, key, bound)
    return param.format(value)


def options_of(owner: str, title: str, params: Mapping[str, Param], prefix: str = "") -> dict[str, str]:
    """Draws the options of a data set or a miner, where it has any, under its title; returns their texts.

    Args:
        owner: its name, which with a dot and the option's makes the setting's full name.
        title: as it stands in a sentence.
        params: the options' declarations.
        prefix: of the keys in the link.
    """
    with place():
        if not params:
            return {}
        with st.expander(f"Options of {title}"):
            names = {f"{owner}.{name}": param for name, param in params.items()}
            return {name: control(param, f"{prefix}{name}") for name, param in names.items()}


def number(param: Param, label: str, bound: dict[str, Any]) -> Any:
    """A field for a number without a range worth a slider."""
    if isinstance(param.valid, Integer):
        step = int(param.step or 1)
        return st.number_input(
            label, param.valid.lo, param.valid.hi, param.default, step, bind="query-params", **bound
        )
    low = getattr(param.valid, "lo", -math.inf)
    high = getattr(param.valid, "hi", math.inf)
    return st.number_input(
        label,
        low if math.isfinite(low) else None,
        high if math.isfinite(high) else None,
        float(param.default),
        param.step,
        format="%g",
        bind="query-params",
        **bound,
    )


def text(param: Param, label: str, key: str, bound: dict[str, Any]) -> str:
    """A field for what is neither a number nor a choice, such as "none" or a number."""
    typed = st.text_input(label, param.format(param.default), bind="query-params", **bound)
    refused = place()
    try:
        return param.format(in_words(param).parse(typed, "run"))
    except ParameterError as error:
        refused.error(f"{sentence(str(error))} The default {param.format(param.default)} is used.")
        return param.format(param.default)


def help_text(param: Param) -> str:
    """What it is, its symbol, what a larger value does, and what is accepted."""
    sentences = [f"{param.meaning[:1].upper()}{param.meaning[1:]}." if param.meaning else ""]
    if param.symbol:
        sentences.append(f"Symbol: ${param.symbol}$.")
    if param.larger:
        sentences.append(f"A larger value {param.larger}.")
    if param.kind in ("int", "float"):
        sentences.append(f"Accepts {param.describe()}.")
    return " ".join(filter(None, sentences))


def offered_values(param: Param, key: str) -> list[Any]:
    """Values to choose from, a linked one among them; empty where a slider or a field fits better."""
    if param.kind == "choice":
        return list(param.valid.examples_in())
    if is_logarithmic(param) and param.explore is not None:
        low, high = param.explore
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        grid = [float(f"{m}e{d}") for d in decades for m in MANTISSAS]
        found = {value for value in grid if low <= value <= high}
    elif param.kind == "int" and param.explore is not None and len(param.explore) > 2:
        found = set(param.explore)
    else:
        return []
    return sorted(found | {param.default, *known_values(param, key)})


def speller(param: Param, key: str) -> Callable[[Any], str]:
    """How the options of a choice are written: as `param.format`, but a linked value as the link spells it.

    Streamlit seeds a choice by comparing texts: to it 1000000 is not 1e+06.
    """
    own: dict[Any, str] = st.session_state.setdefault(f"spelling of {key}", {})
    given = st.query_params.get(key)
    if given is not None:
        with suppress(ParameterError):
            own.setdefault(param.parse(given, key), given)
    return lambda value: own.get(value, param.format(value))


def is_logarithmic(param: Param) -> bool:
    """Whether the range worth exploring covers so many sizes that equal steps would be useless."""
    explore = param.explore
    if param.kind != "float" or explore is None or len(explore) != 2:
        return False
    return bool(explore[0] > 0 and explore[1] / explore[0] >= 50)


def is_coarse(param: Param, low: float, high: float) -> bool:
    """Whether a slider that also holds the linked value would leave the range worth exploring no room."""
    ends = param.explore or (0.0, 1.0)
    return high - low > COARSE * (float(ends[1]) - float(ends[0]))


def span(param: Param, key: str) -> tuple[float, float]:
    """Ends of a slider: the range worth exploring, widened to hold the linked value; the same all session.

    A slider whose ends change is a new one to Streamlit and would lose its value.
    """
    low, high = param.explore or (0.0, 1.0)
    kept = st.session_state.setdefault(f"{SPAN}{key}", (float(low), float(high)))
    inside = [*kept, float(param.default), *map(float, known_values(param, key))]
    st.session_state[f"{SPAN}{key}"] = (min(inside), max(inside))
    return min(inside), max(inside)


def known_values(param: Param, key: str) -> list[Any]:
    """The value in the link and the one of this session, as far as they are valid."""
    found = []
    for value in (st.query_params.get(key), st.session_state.get(key)):
        if value is not None:
            try:
                found.append(param.parse(value, key) if isinstance(value, str) else param.check(value, key))
            except ParameterError:
                continue
    return found


def nice_step(low: float, high: float) -> float:
    """About a hundred steps between the ends, of a round size."""
    power = 10.0 ** math.floor(math.log10((high - low) / 100))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= (high - low) / 100 * (1 - 1e-9))
