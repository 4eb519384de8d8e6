"""Losses against learned proxies: one or more rows of a parameter stand for each class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from losslib.base import BaseLoss
from losslib.distances import CosineSimilarity, Distance
from losslib.errors import ShapeError
from losslib.inputs import Batch, Indices, read_rows
from losslib.learned import weight_at_precision
from losslib.params import Integer, Required
from losslib.precision import values_are_known, without_autocast
from losslib.regularizers import Regularizer
from losslib.terms import DenseTerm, Term, reduced_term
from losslib.types import PairIndices

InitFunction = Callable[[Tensor], Any]


class ProxyLoss(BaseLoss):
    """A loss whose references are its own parameter `weight`, `rows_per_class` rows for each class in turn.

    Further keyword-only options: `weight_regularizer`, `weight_reg_weight` and `weight_init_func`, which
    fills a tensor in place. A subclass implements `proxy_terms` and, if its logits are not the plain
    distances, `plain_logits`.

    An index tuple does not choose pairs here: it weighs rows. The row listed most often has weight 1, and
    a row that is not listed has weight 0.
    """

    family = "proxy"
    activity = "softmax"
    default_distance: ClassVar[Callable[[], Distance]] = CosineSimilarity
    parts = (*BaseLoss.parts, "weight_regularizer", "weight_reg_weight", "weight_init_func")
    default_init: ClassVar[Any] = staticmethod(nn.init.normal_)
    tuples_refused: ClassVar[str] = ""  # why, where an index tuple has no meaning
    anchors_weigh: ClassVar[bool] = False  # rows listed as anchors alone get a weight from a tuple
    not_claimed: ClassVar[dict[str, str]] = {
        "index tuples": "a tuple weighs rows by how often it lists them, three and four tensors differently"
    }

    num_classes = Required(Integer(1), symbol="C", meaning="number of classes; labels lie in 0..C-1")
    embedding_size = Required(Integer(1), symbol="D", meaning="number of coordinates of an embedding")

    weight: nn.Parameter
    weight_regularizer: Regularizer | None
    weight_reg_weight: float
    weight_init_func: InitFunction

    @property
    def rows_per_class(self) -> int:
        """Number of rows of the weight that stand for one class."""
        return 1

    def prepare(self) -> None:
        """Make the weight, (num_classes * rows_per_class, embedding_size)."""
        self.weight = nn.Parameter(torch.empty(self.num_classes * self.rows_per_class, self.embedding_size))
        with torch.no_grad():
            self.weight_init_func(self.weight)

    def _checked_part(self, name: str, value: Any) -> Any:
        if name != "weight_init_func":
            return super()._checked_part(name, value)
        value = type(self).default_init if value is None else value
        if not callable(value):
            raise TypeError(
                f"{type(self).__name__}: weight_init_func must fill a tensor in place, got {value!r}"
            )
        return value

    def proxy_terms(self, x: Tensor, weight: Tensor, labels: Tensor, times: Tensor) -> dict[str, Term]:
        """The unreduced terms.

        Args:
            x: embeddings (B, D).
            weight: the proxies (C * rows_per_class, D).
            labels: classes (B,).
            times: weight of each row (B,), from 0 to 1.
        """
        raise NotImplementedError

    def plain_logits(self, x: Tensor, weight: Tensor) -> Tensor:
        """The logits without a margin, (B, C)."""
        logits: Tensor = self.distance(x, weight)
        return logits

    def compute(self, batch: Batch) -> dict[str, Term]:
        """The terms, of embeddings against the weight."""
        owner = type(self).__name__
        if batch.ref_emb is not None:
            raise ValueError(f"{owner}: takes no ref_emb, because its references are its own weight")
        if batch.indices is not None and self.tuples_refused:
            raise ValueError(f"{owner}: takes no indices_tuple, because {self.tuples_refused}")
        labels = self.classes(batch)
        weight = self._weight_for(batch)
        return self.proxy_terms(batch.embeddings, weight, labels, self._times(batch))

    def _fused(self, batch: Batch) -> Tensor | None:
        from losslib.kernels.proxies import fused  # which imports the losses

        return fused(self, batch)

    def classes(self, batch: Batch) -> Tensor:
        """The labels as class numbers (B,). Raises ShapeError, or TypeError for floating labels."""
        owner, labels, count = type(self).__name__, batch.labels, self.num_classes
        if labels is None:
            raise ShapeError(f"{owner}: labels are needed to find each row's class, got None")
        if labels.is_floating_point():
            raise TypeError(f"{owner}: labels must be whole numbers, got {labels.dtype}")
        labels = labels.long()
        if values_are_known(labels) and labels.numel():
            low, high = (int(end) for end in torch.aminmax(labels))
            if low < 0 or high >= count:
                raise ShapeError(
                    f"{owner}: labels must lie in 0..{count - 1} (num_classes={count}), got values from "
                    f"{low} to {high}"
                )
        return labels

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """The logits without a margin, (B, C), of embeddings (B, D): for classifying.

        Raises ShapeError for rows of another size, ValueError for another dtype or device than the weight's.
        """
        batch = read_rows(type(self).__name__, embeddings)
        with without_autocast(embeddings):
            return self.plain_logits(batch.embeddings, self._weight_for(batch))

    def _weight_for(self, batch: Batch) -> Tensor:
        columns = batch.embeddings.shape[1]
        if columns != self.embedding_size:
            raise ShapeError(
                f"{type(self).__name__}: embeddings must have {self.embedding_size} columns "
                f"(embedding_size), got {columns}"
            )
        return weight_at_precision(self, "weight", batch)

    def _times(self, batch: Batch) -> Tensor:
        """Weight of each row (B,): 1, or how often an index tuple lists it over the most often listed row."""
        x = batch.embeddings
        if batch.indices is None or not len(x):
            return x.new_ones(len(x))
        listed = _anchors(batch.indices) if self.anchors_weigh else torch.cat(tuple(batch.indices))
        times = x.new_zeros(len(x)).index_add(0, listed, torch.ones_like(listed, dtype=x.dtype))
        return times / times.amax().clamp_min(1)

    def _with_penalties(self, terms: dict[str, Term], batch: Batch) -> dict[str, Term]:
        terms = super()._with_penalties(terms, batch)
        if self.weight_regularizer is not None:
            penalty = self.weight_regularizer(self._weight_for(batch)) * self.weight_reg_weight
            terms["weight_reg_loss"] = reduced_term(penalty)
        return terms


class SoftmaxProxyLoss(ProxyLoss):
    """Cross-entropy of logits against the classes: one term a row. A subclass implements `logits`."""

    def logits(self, x: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        """The logits (B, C), with the margin of the true class if there is one."""
        return self.plain_logits(x, weight)

    def proxy_terms(self, x: Tensor, weight: Tensor, labels: Tensor, times: Tensor) -> dict[str, Term]:
        """`loss` per row of the batch."""
        values = F.cross_entropy(self.logits(x, weight, labels), labels, reduction="none")
        return {"loss": DenseTerm(values * times, torch.ones_like(labels, dtype=torch.bool))}


class CosineProxyLoss(SoftmaxProxyLoss):
    """A softmax over cosines, the true class's changed by `with_margin`. The distance must be a cosine."""

    def check_distance(self, distance: Distance) -> None:
        """Raises TypeError for anything but a cosine."""
        if not (distance.is_inverted and distance.normalize_embeddings):
            raise TypeError(
                f"{type(self).__name__}: distance must be CosineSimilarity(), because its margin is one of "
                f"angles, got {distance!r}"
            )

    def cosines(self, x: Tensor, weight: Tensor) -> Tensor:
        """Cosine of each row and class, (B, C)."""
        cosines: Tensor = self.distance(x, weight)
        return cosines

    def with_margin(self, cosine: Tensor, labels: Tensor) -> Tensor:
        """The true class's cosine, (B, 1), made smaller; labels (B,)."""
        raise NotImplementedError

    def scaled(self, cosines: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Cosines (B, C) as logits."""
        raise NotImplementedError

    def plain_logits(self, x: Tensor, weight: Tensor) -> Tensor:
        """The logits without a margin, (B, C)."""
        return self.scaled(self.cosines(x, weight), x, weight)

    def logits(self, x: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        """The logits with the margin, (B, C)."""
        cosines, own = self.cosines(x, weight), labels.unsqueeze(1)
        changed = self.with_margin(cosines.gather(1, own), labels)
        return self.scaled(cosines.scatter(1, own, changed), x, weight)


def _anchors(indices: Indices) -> Tensor:
    if isinstance(indices, PairIndices):
        return torch.cat([indices.pos_anchors, indices.neg_anchors])
    return indices.anchors
