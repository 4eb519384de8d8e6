"""Wrappers around losses: views of the same samples, and weighted sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn

from losslib.cross_batch_memory import CrossBatchMemory
from losslib.errors import ParameterError, ShapeError
from losslib.terms import Term

__all__ = ["MultipleLosses", "SelfSupervisedLoss"]

Miner = Callable[..., Any]
Call = tuple[Tensor, Tensor | None, Any, Tensor | None, Tensor | None]  # as every loss takes them


class SelfSupervisedLoss(nn.Module):
    """Applies a loss to views of the same samples: row i of every view is one sample.

    loss: any loss called on embeddings and labels.
    symmetric: True makes every view an anchor and draws negatives from all views; False takes the first
        view as anchors and the others as the reference set.
    """

    def __init__(self, loss: nn.Module, symmetric: bool = True) -> None:
        super().__init__()
        if not isinstance(loss, nn.Module):
            raise TypeError(f"SelfSupervisedLoss: loss must be a loss, got {loss!r}")
        if not isinstance(symmetric, bool):
            raise ParameterError(f"SelfSupervisedLoss: symmetric must be True or False, got {symmetric!r}")
        self.loss = loss
        self.symmetric = symmetric

    def forward(self, embeddings: Tensor, ref_emb: Tensor, *more_views: Tensor) -> Any:
        """The loss of two or more views, all (B, D). Raises ShapeError where their shapes differ."""
        return self.loss(**self._arguments(embeddings, ref_emb, *more_views))

    def loss_terms(self, embeddings: Tensor, ref_emb: Tensor, *more_views: Tensor) -> dict[str, Term]:
        """The unreduced terms by name."""
        loss: Any = self.loss
        terms: dict[str, Term] = loss.loss_terms(**self._arguments(embeddings, ref_emb, *more_views))
        return terms

    def _arguments(self, embeddings: Tensor, *others: Tensor) -> dict[str, Tensor]:
        for number, view in enumerate(others, 2):
            if view.shape != embeddings.shape:
                raise ShapeError(
                    f"SelfSupervisedLoss: view {number} must have shape {tuple(embeddings.shape)}, the first "
                    f"view's, got {tuple(view.shape)}"
                )
        labels = torch.arange(len(embeddings), device=embeddings.device)
        if self.symmetric:
            return {"embeddings": torch.cat([embeddings, *others]), "labels": labels.repeat(1 + len(others))}
        return {
            "embeddings": embeddings,
            "labels": labels,
            "ref_emb": torch.cat(others),
            "ref_labels": labels.repeat(len(others)),
        }


class MultipleLosses(nn.Module):
    """Weighted sum of losses on the same inputs. Can be nested, and wrapped by other wrappers.

    losses: losses by name, or a list of them.
    miners: by the same names (or a list with None for gaps), each called on embeddings and labels (and the
        reference set where there is one) for that loss's index tuple.
    weights: numbers by the same names, or a list; 1 each when None.

    A call changes the memories inside (`CrossBatchMemory`, however deep) all together or, where one of the
    losses fails, not at all.
    """

    def __init__(
        self,
        losses: Mapping[str, nn.Module] | Sequence[nn.Module],
        miners: Mapping[str, Miner] | Sequence[Miner | None] | None = None,
        weights: Mapping[str, float] | Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        named = _named("losses", losses, None)
        if not named:
            raise ParameterError("MultipleLosses: losses must hold at least one loss, got none")
        for name, loss in named.items():
            if not isinstance(loss, nn.Module):
                raise TypeError(f"MultipleLosses: losses[{name!r}] must be a loss, got {loss!r}")
        self.losses = nn.ModuleDict(named)
        self.miners = {k: m for k, m in _named("miners", miners or {}, named).items() if m is not None}
        for name, miner in self.miners.items():
            if not callable(miner):
                raise TypeError(f"MultipleLosses: miners[{name!r}] must be callable, got {miner!r}")
        self.weights = dict.fromkeys(named, 1.0) | _named("weights", weights or {}, named)
        for name, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, Real) or not math.isfinite(weight):
                raise ParameterError(
                    f"MultipleLosses: weights[{name!r}] must be a finite number, got {weight!r}"
                )

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """The weighted sum, 0-d. Raises ValueError when both an index tuple and miners are given."""
        memories = [module for module in self.modules() if isinstance(module, CrossBatchMemory)]
        before = [memory.remembered() for memory in memories]
        try:
            return self._total((embeddings, labels, indices_tuple, ref_emb, ref_labels))
        except BaseException:
            for memory, state in zip(memories, before, strict=True):
                memory.recall(state)
            raise

    def _total(self, given: Call) -> Tensor:
        total: Tensor | None = None
        for name, loss in self.losses.items():
            value = loss(*self._mined(name, given))
            if not isinstance(value, Tensor):
                raise ValueError(
                    f"MultipleLosses: losses[{name!r}] must give one number, got {type(value).__name__}"
                )
            total = value * self.weights[name] if total is None else total + value * self.weights[name]
        assert total is not None
        return total

    def loss_terms(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> dict[str, Term]:
        """The unreduced, unweighted terms of every loss, named `loss name.term name`."""
        terms: dict[str, Term] = {}
        given: Call = (embeddings, labels, indices_tuple, ref_emb, ref_labels)
        loss: Any
        for name, loss in self.losses.items():
            own = loss.loss_terms(*self._mined(name, given))
            terms |= {f"{name}.{key}": term for key, term in own.items()}
        return terms

    def _mined(self, name: str, given: Call) -> Call:
        """The arguments of one loss: those given, with its miner's tuples."""
        embeddings, labels, indices, ref_emb, ref_labels = given
        if indices is not None and self.miners:
            raise ValueError("MultipleLosses: give indices_tuple or miners, got both")
        miner = self.miners.get(name)
        if miner is None:
            return given
        references = () if ref_emb is None else (ref_emb, ref_labels)
        return embeddings, labels, miner(embeddings, labels, *references), ref_emb, ref_labels


def _named(what: str, given: Any, known: Mapping[str, Any] | None) -> dict[str, Any]:
    """Entries by name; a list takes the names of `known`, or its places."""
    if isinstance(given, Mapping):
        unknown = [] if known is None else [name for name in given if name not in known]
        if unknown:
            raise ParameterError(
                f"MultipleLosses: {what} must be named as the losses are ({', '.join(known or ())}), "
                f"got {', '.join(map(str, unknown))}"
            )
        return dict(given)
    if known is None:
        return {str(place): entry for place, entry in enumerate(given)}
    if len(given) != len(known):
        raise ParameterError(f"MultipleLosses: {what} must have {len(known)} entries, got {len(given)}")
    return dict(zip(known, given, strict=True))
