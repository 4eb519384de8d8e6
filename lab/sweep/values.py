"""Values to vary: read from a line of text, or spread over the range worth exploring."""

from __future__ import annotations

import math

from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param


def variable_options(loss: str) -> dict[str, Param]:
    """Options of a loss that are worth varying: numbers and choices, its margin or temperature first."""
    params = catalog.get(loss).params
    kinds = {
        name: param for name, param in params.items() if param.kind in ("float", "int", "bool", "choice")
    }
    first = [n for n in ("neg_margin", "margin", "temperature", "scale", "alpha", "gamma") if n in kinds]
    return {name: kinds[name] for name in dict.fromkeys((*first, *kinds))}


def suggested(param: Param, count: int = 3) -> tuple[str, ...]:
    """Texts of values spread over the range worth exploring; the default is among them."""
    if param.kind == "bool":
        return tuple(param.format(value) for value in (False, True))
    if param.kind == "choice":
        return tuple(param.format(value) for value in param.valid.examples_in())
    default = float(param.default)
    low, high = _span(param, default)
    if low > 0 and high / low >= 50:
        values = [low * (high / low) ** (k / (count - 1)) for k in range(count)]
    else:
        values = [low + (high - low) * k / (count - 1) for k in range(count)]
    values = [float(f"{value:.2g}") for value in values]
    if not any(math.isclose(value, default) for value in values):
        nearest = min(range(1, count - 1), key=lambda k: abs(values[k] - default))
        values[nearest] = default
    if param.kind == "int":
        values = [round(value) for value in values]
    accepted = [value for value in values if param.valid.contains(value)] or [param.default]
    return tuple(dict.fromkeys(param.format(value) for value in accepted))


def _span(param: Param, default: float) -> tuple[float, float]:
    explore = param.explore
    if explore is not None and len(explore) >= 2:
        return float(explore[0]), float(explore[-1])
    return (default / 2, default * 2) if default > 0 else (default - 1.0, default + 1.0)


def read_values(text: str, param: Param, owner: str) -> tuple[str, ...]:
    """The values of a line such as "0.2, 0.5, 1", as a link spells them. Raises ParameterError."""
    parts = [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]
    if not parts:
        raise ParameterError(f"{owner}: give at least one value for {param.title.lower()}, such as 0.5, 1")
    return tuple(dict.fromkeys(param.format(param.parse(part, owner)) for part in parts))
