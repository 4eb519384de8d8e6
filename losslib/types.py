"""Plain value types: index tuples, and what a loss declares about itself. No torch at run time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor


class TripletIndices(NamedTuple):
    """Index tensors of triplets, each of shape (T,): row t is anchor, positive and negative of triplet t."""

    anchors: Tensor
    positives: Tensor
    negatives: Tensor


class PairIndices(NamedTuple):
    """Index tensors of positive pairs, shapes (P,), and negative pairs, shapes (N,)."""

    pos_anchors: Tensor
    positives: Tensor
    neg_anchors: Tensor
    negatives: Tensor


@dataclass(frozen=True)
class Paper:
    """Where a loss comes from."""

    authors: str
    year: int
    title: str
    url: str

    def __str__(self) -> str:
        return f"{self.authors} ({self.year}): {self.title}" if self.year else f"{self.authors}: {self.title}"

    def linked(self, text: str = "") -> str:
        """The text (by default all of it) as a link in Markdown; without an address the text alone."""
        return f"[{text or self}]({self.url})" if self.url else text or str(self)


@dataclass(frozen=True)
class PmlSpelling:
    """The same loss in pytorch-metric-learning: its class, our option name to theirs where they differ.

    An option renamed to the empty text has no counterpart there. `labels` is their argument that takes our
    labels.
    """

    class_name: str
    renamed: dict[str, str] = field(default_factory=dict)
    labels: str = "labels"


@dataclass(frozen=True)
class Mark:
    """What to draw on a histogram of the loss's own distance.

    kind: "line" (a threshold at `value`), "gap" (the separation required between positive and negative
    distances) or "temperature" (`value` is tau: the negatives' weight falls as exp(+-d / tau)).
    side: "positive", "negative" or "both".
    """

    kind: str
    side: str
    value: float
    symbol: str
    label: str
