"""What is compared: settings that all share, and what each contender has of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.config import LEARNING_RATE, RunConfig
from lab.links import from_settings
from lab.titles import valued
from losslib import catalog
from losslib.errors import ParameterError

LETTERS = ("A", "B", "C", "D")


def line_up(base: Mapping[str, str], contenders: Sequence[Mapping[str, str]]) -> tuple[RunConfig, ...]:
    """The configs of a comparison, in order.

    Args:
        base: settings that all share, as a link spells them.
        contenders: "loss", and what else that contender has of its own.

    Raises:
        ParameterError: naming the contender whose settings are wrong.
    """
    configs = []
    for letter, own in zip(LETTERS, contenders, strict=False):
        try:
            configs.append(from_settings({**base, **own}))
        except ParameterError as error:
            raise ParameterError(f"{letter}: {str(error).removeprefix('run: ')}") from None
    return tuple(configs)


def names(configs: Sequence[RunConfig]) -> tuple[str, ...]:
    """A short name for each: its letter, its loss, and what tells it from another with the same loss."""
    found = []
    for letter, config in zip(LETTERS, configs, strict=False):
        title = catalog.get(config.loss).title
        texts = config.to_settings(full=True)
        keys = [f"{config.loss}.{name}" for name in dict(config.loss_options)]
        if len({one.lr for one in configs}) > 1:
            keys.append(LEARNING_RATE)
        own = [valued(key, texts[key]) for key in keys]
        found.append(f"{letter}: {title}" + (f" ({', '.join(own)})" if own else ""))
    return tuple(found)
