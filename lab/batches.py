"""Which samples a step sees: m per class or uniform, from the run's own generator."""

from __future__ import annotations

import torch
from torch import Tensor

from losslib.errors import ParameterError


class BatchSampler:
    """Draws batches of rows.

    With `per_class` m, as many classes are drawn as fit when each brings m samples, and the batch is shared
    out among them as evenly as it goes: with few classes each brings more than m. A class that has too few
    samples repeats them. With 0 the batch is drawn uniformly, without repeats.

    Args:
        labels: class of each row, (N,) int64.
        batch: rows a batch, at most N.
        per_class: least number of rows a class, 0 for uniform.
        generator: where the random numbers come from.

    Raises:
        ParameterError: fewer than two classes, or a batch larger than the data.
    """

    def __init__(self, labels: Tensor, batch: int, per_class: int, generator: torch.Generator) -> None:
        classes, group, sizes = labels.unique(return_inverse=True, return_counts=True)
        count = len(labels)
        if batch > count:
            raise ParameterError(
                f"run: batch must be at most the {count} training points there are, got {batch}; "
                f"choose a batch of at most {count}, or data with more points"
            )
        if len(classes) < 2:
            raise ParameterError(
                "run: the data have one class only; positives and negatives need at least two"
            )
        self.batch, self.generator, self.count = batch, generator, count
        self.groups = min(len(classes), max(batch // per_class, 1)) if per_class else 0
        self.sizes = sizes
        self.members = torch.full((len(classes), int(sizes.max())), -1)
        order = torch.argsort(group, stable=True)
        starts = sizes.cumsum(0) - sizes
        self.members[group[order], torch.arange(count) - starts[group[order]]] = order
        self.present = self.members >= 0

    def draw(self) -> Tensor:
        """Rows of the next batch, (B,) int64."""
        if not self.groups:
            return torch.randperm(self.count, generator=self.generator)[: self.batch]
        chosen = torch.randperm(len(self.members), generator=self.generator)[: self.groups]
        share = torch.full((self.groups,), self.batch // self.groups)
        share[: self.batch % self.groups] += 1
        keys = torch.rand(self.groups, self.members.shape[1], generator=self.generator)
        shuffled = keys.masked_fill_(~self.present[chosen], -1.0).argsort(dim=1, descending=True)
        row = torch.repeat_interleave(torch.arange(self.groups), share)
        place = torch.arange(self.batch) - (share.cumsum(0) - share)[row]
        place = place % self.sizes[chosen][row]  # a class that runs out begins again
        return self.members[chosen[row], shuffled[row, place]]
