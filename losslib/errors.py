"""The errors losslib raises for bad options and bad inputs."""

from __future__ import annotations


class ParameterError(ValueError):
    """An option has a value outside its declared domain."""


class ShapeError(ValueError):
    """An input tensor has the wrong shape, size or contents."""
