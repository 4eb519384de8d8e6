"""Losses that also take their tensors directly, paired by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from losslib.base import PairLoss
from losslib.errors import ShapeError
from losslib.precision import without_autocast, working
from losslib.terms import Term, reduced_term


class DirectLoss(PairLoss):
    """A pair loss with a second form: three tensors paired by row, named in `direct_arguments`.

    The direct form is meant when the second argument is a 2-D floating tensor.
    """

    direct_arguments: ClassVar[tuple[str, str, str]]

    def direct_terms(self, first: Tensor, second: Tensor, third: Tensor) -> dict[str, Term]:
        """The unreduced terms of three tensors in working precision."""
        raise NotImplementedError

    def loss_terms(self, *given: Any, **named: Any) -> dict[str, Term]:
        """The unreduced terms by name; arguments as in a call."""
        direct = self._direct(given, named)
        if direct is None:
            return super().loss_terms(*given, **named)
        with without_autocast(direct[0]):
            terms = self.direct_terms(*(working(x) for x in direct))
            if self.embedding_regularizer is not None:
                rows = torch.cat([working(x) for x in direct if x.ndim == 2])
                terms["embedding_reg_loss"] = reduced_term(
                    self.embedding_regularizer(rows) * self.embedding_reg_weight
                )
            return terms

    def forward(self, *given: Any, **named: Any) -> Any:
        """The reduced loss, 0-d: of three tensors paired by row, or of embeddings as in any other loss."""
        direct = self._direct(given, named)
        if direct is None:
            return super().forward(*given, **named)
        terms = self.loss_terms(*direct)
        with without_autocast(direct[0]):
            return self._reduced(terms, direct[0], None)

    def _direct(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Tensor, ...] | None:
        """The three tensors of the direct form, checked, or None where embeddings and labels are given."""
        names = self.direct_arguments
        by_name = {name: named[name] for name in names if name in named}
        second = given[1] if len(given) > 1 else by_name.get(names[1])
        if not by_name and not (
            isinstance(second, Tensor) and second.ndim == 2 and second.is_floating_point()
        ):
            return None
        owner = type(self).__name__
        tensors = (*given, *(by_name[name] for name in names[len(given) :] if name in by_name))
        if len(tensors) != 3 or len(by_name) + len(given) != 3 or set(named) - set(names):
            raise ShapeError(f"{owner}: the direct form takes exactly {', '.join(names)}")
        first = tensors[0]
        for name, tensor in zip(names, tensors, strict=True):
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{owner}: {name} must be a tensor, got {type(tensor).__name__}")
            if name != "target" and (tensor.ndim != 2 or tensor.shape != first.shape):
                raise ShapeError(
                    f"{owner}: {names[0]} and {name} must both have shape (B, D), got {tuple(first.shape)} "
                    f"and {tuple(tensor.shape)}"
                )
        return tensors
