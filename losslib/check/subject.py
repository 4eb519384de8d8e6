"""The loss under audit: how it is called, what it declares, and the batches it is tried on."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from losslib.check.registry import NotApplicable
from losslib.errors import ParameterError

ROWS_A_CLASS = 4
NO_LENGTH = 1e-6  # a value that changes by less, relative to itself, does not see lengths
INPUTS = ("embeddings", "labels", "indices_tuple", "ref_emb", "ref_labels")


class Subject:
    """A loss with the few facts that the checks ask for.

    Args:
        loss: any callable as `loss(embeddings, labels)`; what else it accepts is read from its signature.
        embedding_size: D of the batches; read from the loss where it has an `embedding_size`.
        num_classes: number of classes in the batches; read from the loss where it has `num_classes`.
        seed: seed of the batches.

    Raises:
        ParameterError: for a size or a number of classes below 1.
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        embedding_size: int | None = None,
        num_classes: int | None = None,
        seed: int = 0,
    ) -> None:
        for name, given in (("embedding_size", embedding_size), ("num_classes", num_classes)):
            if given is not None and given < 1:
                raise ParameterError(f"audit: {name} must be a whole number of 1 or more, got {given}")
        self.loss = loss
        self.seed = seed
        self.coarse = False
        own_size = getattr(loss, "embedding_size", None)
        self.embedding_size = embedding_size or (own_size if isinstance(own_size, int) else 8)
        own_classes = getattr(loss, "num_classes", None)
        self.class_indexed = isinstance(own_classes, int)
        self.num_classes = num_classes or (min(own_classes, 3) if isinstance(own_classes, int) else 3)
        self.two_views = "two views" in getattr(type(loss), "needs", ())
        self.accepted = frozenset(INPUTS[:1]) if self.two_views else _accepted(loss)

    @property
    def name(self) -> str:
        """Class name of the loss, or the function's name."""
        return str(getattr(self.loss, "__name__", type(self.loss).__name__))

    @property
    def declared(self) -> bool:
        """Whether the loss declares itself as this library's do."""
        return isinstance(getattr(type(self.loss), "params", None), dict)

    def declares(self, name: str, otherwise: Any = None) -> Any:
        """An attribute of the loss, such as `activity` or `stop_gradient`."""
        return getattr(self.loss, name, otherwise)

    @property
    def samples(self) -> bool:
        """Whether the loss draws triplets at random, as its options say."""
        return getattr(self.loss, "triplets_per_anchor", "all") != "all"

    @property
    def has_proxies(self) -> bool:
        """Whether the loss compares embeddings with parameters of its own (not just a scalar a class)."""
        return any(p.ndim >= 2 for p in self.parameters())

    def parameters(self) -> list[nn.Parameter]:
        """The loss's parameters, those held fixed among them."""
        return list(self.loss.parameters()) if isinstance(self.loss, nn.Module) else []

    def needs_two_classes(self) -> None:
        """Raises NotApplicable where the loss knows one class only."""
        if self.num_classes < 2:
            raise NotApplicable("needs two classes")

    def needs_slopes(self) -> None:
        """Raises NotApplicable where rows of one number may have any length, as where they are normalised."""
        if self.embedding_size > 1:
            return
        embeddings, labels = self.batch()
        lengths = torch.arange(1.0, len(embeddings) + 1, dtype=embeddings.dtype)[:, None]
        stretched = self.value(embeddings * lengths, labels)
        if relative_error(stretched, self.value(embeddings, labels), floor=NO_LENGTH) < NO_LENGTH:
            raise NotApplicable(
                "at embedding size 1 the loss sees no lengths (normalised, an embedding is 1 or -1), so "
                "there is no gradient, and only rounding would be compared"
            )

    def needs_labels(self) -> None:
        """Raises NotApplicable where the loss compares two views and takes no labels."""
        if self.two_views:
            raise NotApplicable("the loss takes two views of the same samples, and no labels")

    def needs(self, *names: str) -> None:
        """Raises NotApplicable unless the call accepts these inputs."""
        for name in names:
            if name not in self.accepted:
                raise NotApplicable(f"the loss takes no {name}")

    def copy(self, dtype: torch.dtype | None = None, **attributes: Any) -> Callable[..., Any]:
        """A copy of the loss, its parameters of another dtype and attributes changed if asked."""
        made = copy.deepcopy(self.loss)
        if dtype is not None and isinstance(made, nn.Module):
            made = made.to(dtype)
        for name, value in attributes.items():
            setattr(made, name, value)
        return made

    def rows(
        self, count: int, seed: int = 0, dtype: torch.dtype = torch.float64, size: int | None = None
    ) -> Tensor:
        """Gaussian rows, shape (count, embedding_size)."""
        generator = torch.Generator().manual_seed(1000 * self.seed + seed)
        made = torch.randn(count, size or self.embedding_size, generator=generator, dtype=torch.float64)
        return made.to(dtype)

    def labels(self, count: int | None = None) -> Tensor:
        """Labels 0, 1, 2, 0, 1, ...: every class is there, no two neighbours are equal."""
        return (
            torch.arange(count if count is not None else ROWS_A_CLASS * self.num_classes) % self.num_classes
        )

    def batch(self, seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
        """Embeddings and labels of the ordinary batch, four rows a class."""
        labels = self.labels()
        return self.rows(len(labels), seed, dtype), labels

    def arguments(self, embeddings: Tensor, labels: Tensor | None) -> dict[str, Any]:
        """The call's arguments; a loss of two views gets the rows and, made from them, their second view."""
        if not self.two_views:
            return {"embeddings": embeddings, "labels": labels}
        wide = embeddings.double() if self.coarse else embeddings
        view = 0.9 * wide + 0.4 * wide.flip(1)
        if self.coarse:
            view = (view + (view.detach().bfloat16() - view.detach())).to(embeddings.dtype)
        return {"embeddings": embeddings, "ref_emb": view}

    def of_coarse_views(self) -> Subject:
        """The same with second views that every precision holds exactly, so that both sides get the same."""
        found = copy.copy(self)
        found.coarse = True
        return found

    def value(self, embeddings: Tensor, labels: Tensor | None, *, loss: Any = None, **inputs: Any) -> Tensor:
        """The loss as a tensor of shape (), on a copy in the embeddings' dtype unless one is given."""
        used = loss if loss is not None else self.copy(embeddings.dtype)
        if self.two_views:
            result = used(**self.arguments(embeddings, labels), **inputs)
        else:
            result = used(embeddings, labels, **inputs)
        if not isinstance(result, Tensor) or result.ndim != 0:
            got = f"shape {tuple(result.shape)}" if isinstance(result, Tensor) else type(result).__name__
            raise TypeError(f"the loss must return one number (a tensor of shape ()), got {got}")
        return result

    def gradient(
        self, embeddings: Tensor, labels: Tensor | None, *, loss: Any = None, **inputs: Any
    ) -> tuple[Tensor, Tensor]:
        """Value and gradient by the embeddings. Raises RuntimeError when there is no gradient path."""
        leaf = embeddings.detach().clone().requires_grad_()
        value = self.value(leaf, labels, loss=loss, **inputs)
        value.backward()
        if leaf.grad is None:
            raise RuntimeError("the loss has no gradient path to the embeddings")
        return value.detach(), leaf.grad

    def refuses(self, call: Callable[[], Any]) -> str | None:
        """The message of the error that the call raises, or None when it raises none."""
        try:
            call()
        except (ValueError, TypeError, IndexError, RuntimeError, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
        return None


def _accepted(loss: Callable[..., Any]) -> frozenset[str]:
    """Names of the usual inputs that the call takes."""
    target = loss.forward if isinstance(loss, nn.Module) else loss
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return frozenset(INPUTS[:2])
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return frozenset(INPUTS)
    return frozenset(p.name for p in parameters)


def learnable(loss: Callable[..., Any]) -> dict[str, nn.Parameter]:
    """The parameters of a loss that ask for a gradient, by name."""
    named = loss.named_parameters() if isinstance(loss, nn.Module) else []
    return {name: parameter for name, parameter in named if parameter.requires_grad}


def all_pairs(labels: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Index tensors of every positive and negative pair, no row with itself."""
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool)
    positives, negatives = (same & ~itself).nonzero(), (~same).nonzero()
    return positives[:, 0], positives[:, 1], negatives[:, 0], negatives[:, 1]


def relative_error(got: Tensor, want: Tensor, floor: float = 1e-12) -> float:
    """Largest absolute difference over the largest expected size; infinite when either is not finite."""
    got, want = got.detach().double(), want.detach().double()
    if not bool(torch.isfinite(got).all() and torch.isfinite(want).all()):
        return float("inf")
    if want.numel() == 0:
        return 0.0
    return float((got - want).abs().max() / want.abs().max().clamp_min(floor))


def is_finite(*tensors: Tensor) -> bool:
    """Whether every entry of every tensor is finite."""
    return all(bool(torch.isfinite(t).all()) for t in tensors)


def worst(results: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """The entry with the largest error."""
    return max(results, key=lambda entry: entry[1])
