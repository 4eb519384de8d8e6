"""Every loss's value on given embeddings, with the share of pairs that would still have a gradient."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from losslib import catalog
from losslib.check.cause import cause

_LOG = logging.getLogger("losslab")
ROWS = 512  # pairs grow with the square: a larger sample changes the values little


@dataclass(frozen=True)
class LossRow:
    """One loss on the embeddings.

    Attributes:
        name: class name.
        title: the loss in words.
        family: family of the loss.
        value: with default options; NaN where there is none.
        active_share: share of pairs with a gradient, from 0 to 1; NaN where the loss weighs no pairs.
        note: why there is no value, or "".
    """

    name: str
    title: str
    family: str
    value: float
    active_share: float
    note: str = ""


def sample(embeddings: Tensor, labels: Tensor, rows: int = ROWS, seed: int = 0) -> tuple[Tensor, Tensor]:
    """At most so many rows, chosen at random, in their order."""
    if len(embeddings) <= rows:
        return embeddings, labels
    chosen = torch.randperm(len(embeddings), generator=torch.Generator().manual_seed(seed))[:rows]
    chosen = chosen.sort().values
    return embeddings[chosen], labels[chosen]


def loss_rows(embeddings: Tensor, labels: Tensor, seed: int = 0) -> tuple[LossRow, ...]:
    """Every loss with default options on at most 512 of the embeddings, in the order of the catalog.

    Args:
        embeddings: (N, D) finite.
        labels: (N,).
        seed: chooses the rows.
    """
    rows, classes = sample(embeddings, labels, seed=seed)
    return tuple(loss_row(name, rows, classes) for name in catalog.losses())


def loss_row(name: str, embeddings: Tensor, labels: Tensor) -> LossRow:
    """One loss with default options; a refusal becomes the note."""
    cls = catalog.get(name)
    value = share = math.nan
    note = ""
    if cls.required:
        note = "has parameters of its own that a training must fit first"
    elif cls.needs:
        note = f"needs {' and '.join(cls.needs)}"
    else:
        try:
            loss = cls()
            value = float(loss(embeddings, labels).detach())
            if hasattr(loss, "pair_weights"):
                share = float(cls().pair_weights(embeddings, labels).active_share)
            if not math.isfinite(value):
                note = "its value is not a finite number here"
        except ValueError as error:
            note = str(error)
        except Exception as error:  # a loss of one's own: it must not take the others with it
            _LOG.exception("%s failed on an upload", name)
            note = f"it fails here: {cause(error)}"
    return LossRow(name, cls.title, cls.family, value, share, note)
