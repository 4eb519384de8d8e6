"""Settings as their controls call them, for sentences: from the one declaration of each."""

from __future__ import annotations

from collections.abc import Mapping

import datasets
from lab.config import miner_params
from lab.settings import settings
from losslib import catalog
from losslib.params import Param

OF = {"data": " of the data", "miner": " of the miner"}  # whose options may be called as one of the loss


def declaration(key: str) -> Param:
    """The declaration of a setting by its full name, such as "lr" or "ContrastiveLoss.neg_margin"."""
    return _declared(key)[1]


def called(key: str) -> str:
    """A setting as it stands in a sentence: "learning rate", "negative margin", "noise of the data"."""
    kind, param = _declared(key)
    return f"{param.title.lower()}{OF.get(kind, '')}"


def valued(key: str, text: str) -> str:
    """A setting with the value that a link spells: "negative margin 0.5"; a loss or data set by its title."""
    if key == "loss":
        return catalog.get(text).title
    return datasets.get(text).title if key == "data" else f"{called(key)} {text}"


def _declared(key: str) -> tuple[str, Param]:
    """What a setting belongs to ("data", "loss", "miner" or "") and its declaration."""
    owner, _, name = key.rpartition(".")
    known: Mapping[str, Param] = settings()
    kind = ""
    if owner in datasets.catalog():
        kind, known = "data", datasets.get(owner).options
    elif owner in catalog.losses():
        kind, known = "loss", catalog.losses()[owner].params
    elif owner:
        kind, known = "miner", miner_params(owner)
    return kind, known[name]
