"""What an error of a loss says, and where in the user's own code it arose."""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

import torch

import losslib
from losslib.errors import ParameterError

LONGEST = 400
_OURS = tuple(str(Path(str(package.__file__)).parent) for package in (losslib, torch, importlib))


def cause(error: BaseException) -> str:
    """Type, message in one line, and the innermost line of code outside losslib and torch.

    A ParameterError is this library's own refusal and says all there is to say.
    """
    said = " ".join(str(error).split())
    if len(said) > LONGEST:
        said = f"{said[:LONGEST]}..."
    if isinstance(error, ParameterError):
        return said
    return ": ".join(filter(None, (type(error).__name__, said))) + place(error)


def place(error: BaseException) -> str:
    """The user's file, line and function in brackets; nothing where the error is not of a user's code."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((*_OURS, "<")):
            return f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"
    return ""
