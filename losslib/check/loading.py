"""Find a loss by its name and build it from options given as text."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from losslib import catalog
from losslib.check.cause import cause
from losslib.errors import ParameterError
from losslib.params import Param


def find_loss(target: str) -> Callable[..., Any]:
    """The class or function named `package.module:Name`, or a loss of this library by its class name.

    Raises:
        ParameterError: when the module cannot be imported or has no such name.
    """
    module_name, separator, name = target.partition(":")
    if not separator:
        return catalog.get(target)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the module is the user's: whatever it raises is the reason
        raise ParameterError(f"cannot import {module_name}: {cause(error)}") from error
    if not hasattr(module, name):
        raise ParameterError(f"module {module_name} has no {name!r}")
    return getattr(module, name)


def read_options(made_by: Callable[..., Any], settings: Sequence[str]) -> dict[str, Any]:
    """Options from texts such as "margin=0.3", by the loss's declarations where it has any.

    A loss that declares nothing gets Python literals (0.3, True, None, "all"), else the text itself.

    Raises:
        ParameterError: for a text without "=" and for a value that the declaration refuses.
    """
    declared: dict[str, Param] = getattr(made_by, "params", {})
    owner = getattr(made_by, "__name__", "loss")
    found: dict[str, Any] = {}
    for setting in settings:
        name, separator, text = setting.partition("=")
        if not separator or not name:
            raise ParameterError(f"--set takes option=value, got {setting!r}")
        found[name] = declared[name].parse(text, owner) if name in declared else _literal(text)
    return found


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def build_loss(target: str, settings: Sequence[str] = ()) -> Callable[..., Any]:
    """The loss of that name with those options. Raises ParameterError with the reason when it cannot be."""
    made_by = find_loss(target)
    options = read_options(made_by, settings)
    if not isinstance(made_by, type):
        if options:
            raise ParameterError(f"{target} is no class, so it takes no options")
        return made_by
    try:
        return made_by(**options)
    except ParameterError:
        raise
    except Exception as error:  # a constructor may raise anything
        raise ParameterError(f"cannot be built: {cause(error)}") from error
