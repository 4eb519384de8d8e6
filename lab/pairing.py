"""The rules of pairing: which samples of a batch are positives, in words, for a config and for a loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from losslib import catalog, pairs
from losslib.pairs import PairMasks

TWO_VIEWS = "two views"  # what a loss of two views says it needs
SIZES = {"num_classes", "embedding_size", "class_counts"}  # what the data and the embedding size decide


@dataclass(frozen=True)
class Rule:
    """One rule.

    Args:
        title: in a list.
        positives: what the positives of a batch are, one sentence; may name {delta}, {fraction}, {what}.
        quality: what histogram and quality count as positives on the probe, one sentence.
        views: whether every sample is seen twice, augmented.
        classes: whether the loss is given classes 0..C-1.
    """

    title: str
    positives: str
    quality: str
    views: bool = False
    classes: bool = False


RULES = {
    "label": Rule(
        "Same label",
        "Two samples with the same label are a positive pair, all others are negative.",
        "The histogram and the quality curves count pairs by the same rule.",
        classes=True,
    ),
    "continuous": Rule(
        "Continuous label",
        "Two samples whose {what} differs by at most {delta} are a positive pair, all others are negative.",
        "Histogram, recall@1, MAP@R and alignment follow the same rule; colours show pieces of the range.",
    ),
    "views": Rule(
        "Two augmented views",
        "The two views of one sample are a positive pair, all others are negative; no label is used.",
        "Histogram and alignment compare two views of each sample; recall@1 and MAP@R use the labels, "
        "which training never sees.",
        views=True,
    ),
    "semi": Rule(
        "Semi-supervised",
        "{fraction} of the training samples have a known label: two of them with the same label are a "
        "positive pair, and so are the two views of any sample; all others are negative.",
        "Histogram and quality use all labels, known in training or not.",
        views=True,
    ),
}


@dataclass(frozen=True, eq=False)
class Paired:
    """What a loss is called with beside the embeddings (R, D): a row a sample, or all first, then all second
    views.

    Attributes:
        labels: (R,) class of each row, for people.
        index: (R,) data set indices, on the CPU.
        inputs: keyword arguments of the loss beside the embeddings.
        groups: (R,) rows of equal number are positives; None for a continuous label.
        values: (R,) continuous label, or None.
        delta: by how much the continuous labels of positives differ at most.
    """

    labels: Tensor
    index: Tensor
    inputs: dict[str, Any]
    groups: Tensor | None = None
    values: Tensor | None = None
    delta: float = 0.0

    def ordered(self) -> tuple[Paired, Tensor]:
        """The batch with its rows by class and by what makes positives, and which row stands where (R,)."""
        order = torch.argsort(self.labels, stable=True)
        if self.values is not None:
            order = torch.argsort(self.values, stable=True)
        elif self.groups is not None and self.groups is not self.labels:
            order = torch.argsort(self.groups, stable=True)
            order = order[torch.argsort(self.labels[order], stable=True)]
        inputs = {name: permuted(value, order) for name, value in self.inputs.items()}
        groups, values = (None if rows is None else rows[order] for rows in (self.groups, self.values))
        index = self.index[order.to(self.index.device)]
        return Paired(self.labels[order], index, inputs, groups, values, self.delta), order

    def reach(self) -> Tensor | None:
        """First and one after the last positive of each row, itself among them, (R, 2), of ordered rows.

        None where positives are rows of equal labels.
        """
        if self.values is not None:
            near = pairs.within_delta(self.values, self.delta).positive
            near.fill_diagonal_(True)
        elif self.groups is None or torch.equal(self.groups, self.labels):
            return None
        else:
            near = self.groups.unsqueeze(1) == self.groups
        first = near.to(torch.uint8).argmax(1)
        return torch.stack([first, first + near.sum(1)], dim=1)


def permuted(value: Any, order: Tensor) -> Any:
    """Labels, masks or an index tuple for rows that stand in another order."""
    if isinstance(value, Tensor):
        return value[order]
    if isinstance(value, PairMasks):
        return PairMasks(value.positive[order][:, order], value.negative[order][:, order])
    place = torch.argsort(order)
    return type(value)(*(place[index] for index in value))


class Pairing:
    """The rule of one run, on its training points.

    Args:
        name: a key of `RULES`.
        labels: of the training points, (N,).
        classes: number of classes.
        values: continuous label, (N,), or None.
        delta: for a continuous label.
        label_fraction: share of known labels.
        seed: which of them are known.
    """

    def __init__(
        self,
        name: str,
        labels: Tensor,
        classes: int,
        values: Tensor | None = None,
        delta: float = 0.0,
        label_fraction: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.rule = RULES[name]
        self.name, self.delta = name, delta
        self.values = values if name == "continuous" else None
        self.groups: Tensor | None = None
        if name == "label":
            self.groups = labels
        elif name == "views":
            self.groups = torch.arange(len(labels), device=labels.device)
        elif name == "semi":
            known = known_labels(labels, label_fraction, seed)
            self.groups = torch.where(
                known, labels, classes + torch.arange(len(labels), device=labels.device)
            )

    def pairs(self, rows: Tensor) -> Tensor | PairMasks:
        """What says which pairs there are among these training points (R,), views repeated: groups, or masks.

        Equal groups are `losslib.pairs.same_label`, `two_views` and `semi_supervised`; as labels they serve
        every loss in its quickest form.
        """
        if self.values is not None:
            return pairs.within_delta(self.values[rows], self.delta)
        assert self.groups is not None
        return self.groups[rows]


def known_labels(labels: Tensor, fraction: float, seed: int) -> Tensor:
    """Mask (N,) of the samples whose label is known: that share of each class, drawn by the seed alone."""
    draw = torch.Generator().manual_seed(seed + 1)
    keys = torch.rand(len(labels), generator=draw).to(labels.device)
    by_class = torch.argsort(keys)
    by_class = by_class[torch.argsort(labels[by_class], stable=True)]
    _, group, sizes = labels.unique(return_inverse=True, return_counts=True)
    first = (sizes.cumsum(0) - sizes)[group[by_class]]
    place = torch.arange(len(labels), device=labels.device) - first
    known = torch.zeros(len(labels), dtype=torch.bool, device=labels.device)
    known[by_class] = place < (fraction * sizes.double()).round()[group[by_class]]
    return known


def refusal(loss: str, pairing: str = "label", miner: str = "none") -> str:
    """Why a loss cannot be trained under a rule, with a miner; "" if it can. A sentence without its end."""
    cls = catalog.get(loss)
    unmet = [
        need for need in cls.needs if need not in SIZES and not (need == TWO_VIEWS and pairing == "views")
    ]
    if unmet:
        other = "choose another loss" if unmet != [TWO_VIEWS] else "choose another loss, or pairing=views"
        return f"{loss} needs {' and '.join(unmet)} of each sample, and pairing={pairing} gives one; {other}"
    if not RULES[pairing].classes and (cls.family == "proxy" or SIZES & {*cls.needs} - {"embedding_size"}):
        return f"{loss} needs the class of each sample, and pairing={pairing} gives none; choose another loss"
    if pairing == "continuous" and (why := why_no_tuples(loss)):
        return f"{loss} takes labels only ({why}), and pairing=continuous gives pairs; choose another loss"
    if miner != "none" and (why := why_no_tuples(loss)):
        return f"{loss} takes no pairs or triplets of a miner, because {why}; choose miner=none"
    return ""


def class_refusal(loss: str, values: Mapping[str, Any], pairing: str, classes: int) -> str:
    """Why an option that says how many classes there are does not fit the data; "" if it does.

    Args:
        loss: class name.
        values: its options.
        pairing: a key of `RULES`.
        classes: of the data.
    """
    for name in ("num_classes", "num_proxies"):
        value = values.get(name)
        if value is None:
            continue
        if not RULES[pairing].classes:
            return f"{name} of {loss} needs classes, and pairing={pairing} gives none; leave it at none"
        if value < classes:
            return f"{name} of {loss} must be at least {classes}, the number of classes, got {value}"
    return ""


@cache
def why_no_tuples(loss: str) -> str:
    """Why a loss refuses index tuples, in the loss's own words; "" if it takes them."""
    x, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
    masks = pairs.same_label(labels)
    try:
        built = small_loss(loss)
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            built.loss_terms(x, labels if built.family == "proxy" else None, masks.indices())
    except ValueError as error:
        _, because, why = str(error).partition("because ")
        return why if because else str(error)
    return ""


def small_loss(loss: str) -> Any:
    """A loss at its default options, for two classes and embeddings of size 4; no random state moves."""
    cls = catalog.get(loss)
    sizes = {"num_classes": 2, "embedding_size": 4, "class_counts": torch.tensor([2, 2])}
    with torch.random.fork_rng(devices=[]):
        return cls(**{name: sizes[name] for name in cls.required})
