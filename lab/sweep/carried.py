"""Files that somebody dropped, carried to the worker process that needs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from datasets import Dataset, file
from lab.config import RunConfig

Makers = tuple[tuple[str, Callable[[int], Dataset]], ...]


def carrying(function: Callable[..., Any], argument: Any) -> Callable[..., Any]:
    """The function, which brings along what the configs of its argument name and only this process has."""
    makers = makers_for(argument)
    return partial(with_files, makers, function) if makers else function


def makers_for(argument: Any) -> Makers:
    """Digest and maker of each file that a config, or one of several, names."""
    configs = [argument] if isinstance(argument, RunConfig) else argument
    if not isinstance(configs, Iterable):
        return ()
    wanted = {
        str(config.data_values["digest"])
        for config in configs
        if isinstance(config, RunConfig) and config.data == "file"
    }
    return tuple((digest, maker) for digest in sorted(wanted) if (maker := file.offered(digest)) is not None)


def with_files(makers: Makers, function: Callable[..., Any], *arguments: Any) -> Any:
    """In the worker: the files are known, then the function is called."""
    for digest, maker in makers:
        file.offer(digest, maker)
    return function(*arguments)
