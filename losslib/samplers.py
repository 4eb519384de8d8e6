"""Samplers for torch's DataLoader: batches made so that they hold the pairs a loss needs.

All draw from torch's generator, or from the one given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Sampler

from losslib.errors import ParameterError, ShapeError
from losslib.params import Choice, Either, Integer, Param

__all__ = ["FixedSetOfTriplets", "HierarchicalSampler", "MPerClassSampler"]


class MPerClassSampler(Sampler[list[int]]):
    """A batch sampler: `m` samples of each of `batch_size // m` classes in every batch.

    Give it to a DataLoader as `batch_sampler`. One pass covers the data: the samples of each class are
    shuffled and dealt out in groups of m, the last one filled up with others of the class (the same again in
    a class of fewer than m). No class appears twice in a batch; a batch that lacks classes is filled up with
    further groups. A class much larger than the others therefore makes a pass longer and repeats the others.

    Args:
        labels: (N,), a tensor or a sequence.
        m: number of samples of a class in a batch.
        batch_size: a multiple of m, with no more classes than there are; None takes every class.
        generator: torch's own when None.

    Raises ParameterError for sizes that do not fit, ShapeError for labels of another shape.
    """

    def __init__(
        self,
        labels: Tensor | Sequence[Any],
        m: int,
        batch_size: int | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        self.m = _whole("MPerClassSampler", "m", m)
        self.members = _members("MPerClassSampler", labels)
        classes = len(self.members)
        self.batch_size = self.m * classes if batch_size is None else batch_size
        _whole("MPerClassSampler", "batch_size", self.batch_size, least=0 if batch_size is None else 1)
        if self.batch_size % self.m:
            raise ParameterError(
                f"MPerClassSampler: batch_size must be a multiple of m={self.m}, got {batch_size}"
            )
        self.classes_per_batch = self.batch_size // self.m
        if self.classes_per_batch > classes:
            raise ParameterError(
                f"MPerClassSampler: batch_size // m must be at most {classes}, the number of classes, "
                f"got {self.classes_per_batch}"
            )
        self.generator = generator
        groups = [-(-len(own) // self.m) for own in self.members]
        # enough batches for all groups, and for those of the largest class one by one
        self.batches = max([-(-sum(groups) // max(self.classes_per_batch, 1)), *groups], default=0)

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[list[int]]:
        holds = self._dealt()
        for place in _shuffled(len(holds), self.generator):
            batch = holds[place]
            others = [c for c in _shuffled(len(self.members), self.generator) if c not in batch]
            for c in others[: self.classes_per_batch - len(batch)]:
                batch[c] = self._filled([], c)
            yield [index for group in batch.values() for index in group]

    def _dealt(self) -> list[dict[int, list[int]]]:
        """Every sample once, as groups by class, in batches that hold no class twice."""
        holds: list[dict[int, list[int]]] = [{} for _ in range(self.batches)]
        number = 0
        for c in _shuffled(len(self.members), self.generator):
            own = self.members[c]
            order = [own[i] for i in _shuffled(len(own), self.generator)]
            for start in range(0, len(order), self.m):
                # groups of a class are neighbours in number, and no more than there are batches
                holds[number % self.batches][c] = self._filled(order[start : start + self.m], c)
                number += 1
        return holds

    def _filled(self, group: list[int], c: int) -> list[int]:
        """A group of m samples of class c: those given, then others of the class, then any of it."""
        own = self.members[c]
        rest = [index for index in own if index not in group] if group else own
        group = group + _chosen(rest, min(self.m - len(group), len(rest)), self.generator)
        again = torch.randint(len(own), (self.m - len(group),), generator=self.generator).tolist()
        return group + [own[i] for i in again]


class HierarchicalSampler(Sampler[list[int]]):
    """A batch sampler for labels of two levels: each batch from a few super classes, each from whole classes.

    For every set of `super_classes_per_batch` super classes there are `batches_per_super_tuple` batches. The
    share of a super class is filled with classes of it in random order, `samples_per_class` each (or all
    samples of the class), as long as they fit; a batch may be smaller where they do not.

    Args:
        labels: (N, L), whole numbers; a column is a level.
        batch_size: a multiple of super_classes_per_batch.
        samples_per_class: number of samples of a class in a batch, repeated in smaller classes, or "all".
        batches_per_super_tuple: batches for each set of super classes.
        super_classes_per_batch: number of super classes in a batch.
        inner_label: column of the classes.
        outer_label: column of the super classes.
        generator: torch's own when None.

    Raises ParameterError for sizes that do not fit, ShapeError for labels of another shape.
    """

    def __init__(
        self,
        labels: Tensor,
        batch_size: int,
        samples_per_class: int | str,
        batches_per_super_tuple: int = 4,
        super_classes_per_batch: int = 2,
        inner_label: int = 0,
        outer_label: int = 1,
        generator: torch.Generator | None = None,
    ) -> None:
        owner = "HierarchicalSampler"
        labels = torch.as_tensor(labels)
        if labels.ndim != 2 or not max(inner_label, outer_label) < labels.shape[1]:
            raise ShapeError(
                f"{owner}: labels must be (N, L) with columns {inner_label} and {outer_label}, got "
                f"{tuple(labels.shape)}"
            )
        many = Param("all", valid=Either(Integer(1), Choice("all")), name="samples_per_class")
        self.samples_per_class = many.check(samples_per_class, owner)
        self.batches_per_super_tuple = _whole(owner, "batches_per_super_tuple", batches_per_super_tuple)
        self.super_classes_per_batch = _whole(owner, "super_classes_per_batch", super_classes_per_batch)
        self.batch_size = _whole(owner, "batch_size", batch_size)
        self.share = self.batch_size // self.super_classes_per_batch
        if self.batch_size % self.super_classes_per_batch or (
            self.samples_per_class != "all" and self.share % self.samples_per_class
        ):
            raise ParameterError(
                f"{owner}: batch_size must be a multiple of super_classes_per_batch * samples_per_class, "
                f"got {batch_size}, {super_classes_per_batch} and {samples_per_class}"
            )
        inner, outer = labels[:, inner_label].tolist(), labels[:, outer_label].tolist()
        tree: dict[Any, dict[Any, list[int]]] = {}
        for index, (own, above) in enumerate(zip(inner, outer, strict=True)):
            tree.setdefault(above, {}).setdefault(own, []).append(index)
        self.tree = [list(classes.values()) for _, classes in sorted(tree.items())]
        if len(self.tree) < self.super_classes_per_batch:
            raise ParameterError(
                f"{owner}: super_classes_per_batch must be at most {len(self.tree)}, the number of super "
                f"classes, got {super_classes_per_batch}"
            )
        self.generator = generator
        self.sets = list(combinations(range(len(self.tree)), self.super_classes_per_batch))

    def __len__(self) -> int:
        return len(self.sets) * self.batches_per_super_tuple

    def __iter__(self) -> Iterator[list[int]]:
        for place in _shuffled(len(self), self.generator):
            batch = [index for above in self.sets[place % len(self.sets)] for index in self._part(above)]
            yield [batch[i] for i in _shuffled(len(batch), self.generator)]

    def _part(self, above: int) -> list[int]:
        """Samples of one super class, class by class."""
        classes = self.tree[above]
        part: list[int] = []
        for c in _shuffled(len(classes), self.generator):
            own = classes[c]
            count = len(own) if self.samples_per_class == "all" else self.samples_per_class
            if len(part) + count > self.share:
                continue
            chosen = _chosen(own, min(count, len(own)), self.generator)
            again = torch.randint(len(own), (count - len(chosen),), generator=self.generator).tolist()
            part += chosen + [own[i] for i in again]
        return part


class FixedSetOfTriplets(Sampler[int]):
    """Triplets chosen once, their indices one after the other: anchor, positive, negative.

    For studies in which triplets are all that is known. Each takes two classes, an anchor and a positive of
    the first and a negative of the second. Each pass has a new order of triplets; use a batch size that is a
    multiple of 3.

    Args:
        labels: (N,), a tensor or a sequence.
        num_triplets: number of triplets.
        generator: torch's own when None.

    Attributes:
        triplets: (num_triplets, 3) int64.

    Raises ParameterError where no class has two samples or there is only one class.
    """

    def __init__(
        self, labels: Tensor | Sequence[Any], num_triplets: int, generator: torch.Generator | None = None
    ) -> None:
        self.num_triplets = _whole("FixedSetOfTriplets", "num_triplets", num_triplets)
        members = _members("FixedSetOfTriplets", labels)
        self.generator = generator
        anchors = [c for c, own in enumerate(members) if len(own) > 1]
        if not anchors or len(members) < 2:
            raise ParameterError(
                "FixedSetOfTriplets: labels must have two classes or more, one of them with two samples"
            )
        self.triplets = torch.tensor([self._one(members, anchors) for _ in range(self.num_triplets)])

    def _one(self, members: list[list[int]], anchors: list[int]) -> list[int]:
        own = anchors[_below(len(anchors), self.generator)]
        other = (own + 1 + _below(len(members) - 1, self.generator)) % len(members)
        negative = members[other][_below(len(members[other]), self.generator)]
        return [*_chosen(members[own], 2, self.generator), negative]

    def __len__(self) -> int:
        return 3 * self.num_triplets

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(self.num_triplets, generator=self.generator)
        return iter(self.triplets[order].flatten().tolist())


def _members(owner: str, labels: Any) -> list[list[int]]:
    """The indices of each class, classes in ascending order."""
    given = torch.as_tensor(labels)
    if given.ndim != 1:
        raise ShapeError(f"{owner}: labels must have shape (N,), got {tuple(given.shape)}")
    _, group, counts = given.unique(return_inverse=True, return_counts=True)
    parts = group.argsort(stable=True).split(counts.tolist())
    return [part.tolist() for part in parts if len(part)]


def _whole(owner: str, name: str, value: Any, least: int = 1) -> int:
    number: int = Param(least, valid=Integer(least), name=name).check(value, owner)
    return number


def _below(count: int, generator: torch.Generator | None) -> int:
    return int(torch.randint(count, (), generator=generator))


def _shuffled(count: int, generator: torch.Generator | None) -> list[int]:
    order: list[int] = torch.randperm(count, generator=generator).tolist()
    return order


def _chosen(values: list[int], count: int, generator: torch.Generator | None) -> list[int]:
    """`count` different ones of the values, at random."""
    return [values[i] for i in _shuffled(len(values), generator)[:count]]
