"""Random batches of every kind a loss must handle, small enough for brute-force loops."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BALANCED = [0, 1, 2, 0, 1, 2, 0, 1, 2]
UNBALANCED = [3, 0, 3, 3, 1, 0, 3, 5, 3]  # 1 and 5 have no partner


@dataclass(frozen=True)
class Inputs:
    """What a loss is called with."""

    embeddings: Tensor
    labels: Tensor | None = None
    indices_tuple: Any = None
    ref_emb: Tensor | None = None
    ref_labels: Tensor | None = None

    def arguments(self, embeddings: Tensor | None = None, ref_emb: Tensor | None = None) -> dict[str, Any]:
        """Keyword arguments of the usual call, with other tensors in place of the embeddings if given."""
        given = {
            "embeddings": self.embeddings if embeddings is None else embeddings,
            "labels": self.labels,
            "indices_tuple": self.indices_tuple,
            "ref_emb": self.ref_emb if ref_emb is None else ref_emb,
            "ref_labels": self.ref_labels,
        }
        return {name: value for name, value in given.items() if value is not None}


def rows(count: int, seed: int, size: int = 4) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def balanced(seed: int = 0) -> Inputs:
    return Inputs(rows(9, seed), torch.tensor(BALANCED))


def unbalanced(seed: int = 1) -> Inputs:
    return Inputs(rows(9, seed), torch.tensor(UNBALANCED))


def reference(seed: int = 2) -> Inputs:
    """A separate set, some of its classes missing from the batch and the other way round."""
    ref_labels = torch.tensor([2, 0, 1, 1, 0, 2, 4])
    return Inputs(
        rows(5, seed), torch.tensor([0, 1, 2, 1, 0]), ref_emb=rows(7, seed + 50), ref_labels=ref_labels
    )


def triplet_tuple(seed: int = 3) -> Inputs:
    """Triplets; (0, 3, 1) is listed twice, so its pairs are too."""
    listed = (
        torch.tensor([0, 0, 3, 5, 7, 0]),
        torch.tensor([3, 3, 6, 2, 1, 6]),
        torch.tensor([1, 1, 4, 0, 8, 2]),
    )
    return Inputs(rows(9, seed), torch.tensor(BALANCED), listed)


def pair_tuple(seed: int = 4) -> Inputs:
    """Pairs; (0, 3) and (4, 2) are listed twice, anchor 8 has no negative, anchor 5 no positive."""
    listed = (
        torch.tensor([0, 0, 0, 4, 8]),
        torch.tensor([3, 3, 6, 7, 2]),
        torch.tensor([0, 0, 4, 4, 4, 5]),
        torch.tensor([1, 2, 2, 2, 3, 0]),
    )
    return Inputs(rows(9, seed), torch.tensor(BALANCED), listed)


def reference_tuple(seed: int = 5) -> Inputs:
    """Triplets without any labels, the last two columns into a reference set."""
    listed = (torch.tensor([0, 1, 1, 4]), torch.tensor([6, 2, 2, 0]), torch.tensor([1, 5, 3, 6]))
    return Inputs(rows(5, seed), None, listed, ref_emb=rows(7, seed + 50))


KINDS = {
    "balanced": balanced,
    "unbalanced": unbalanced,
    "reference": reference,
    "triplet_tuple": triplet_tuple,
    "pair_tuple": pair_tuple,
    "reference_tuple": reference_tuple,
}


def value_and_gradients(call: Any, given: Inputs) -> tuple[Tensor, list[Tensor]]:
    """The value of `call(**arguments)` and its gradients by embeddings and, where given, references."""
    leaves = [given.embeddings.clone().requires_grad_()]
    if given.ref_emb is not None:
        leaves.append(given.ref_emb.clone().requires_grad_())
    value = call(**given.arguments(*leaves))
    gradients = torch.autograd.grad(value, leaves, allow_unused=True)
    return value.detach(), [
        torch.zeros_like(leaf) if g is None else g for leaf, g in zip(leaves, gradients, strict=True)
    ]


def one_class(seed: int = 6) -> Inputs:
    return Inputs(rows(5, seed), torch.zeros(5, dtype=torch.int64))


def all_different(seed: int = 7) -> Inputs:
    return Inputs(rows(5, seed), torch.arange(5))


def one_row(seed: int = 8) -> Inputs:
    return Inputs(rows(1, seed), torch.tensor([1]))


def no_row() -> Inputs:
    return Inputs(rows(0, 0), torch.zeros(0, dtype=torch.int64))


def coincident(seed: int = 9) -> Inputs:
    """A positive and a negative that equal the anchor exactly, and a whole class at one point."""
    x = rows(9, seed)
    x[3] = x[1] = x[0]
    x[5] = x[8] = x[2]
    return Inputs(x, torch.tensor(BALANCED))


def zero_rows(seed: int = 10) -> Inputs:
    x = rows(9, seed)
    x[0] = x[4] = 0
    return Inputs(x, torch.tensor(BALANCED))


def empty_tuple(seed: int = 11) -> Inputs:
    nothing = torch.zeros(0, dtype=torch.int64)
    return Inputs(rows(4, seed), None, (nothing, nothing, nothing))


def same_object_as_reference(seed: int = 12) -> Inputs:
    """Nothing is excluded from a supplied reference, even when it is the batch itself."""
    x, labels = rows(5, seed), torch.tensor([0, 1, 0, 2, 1])
    return Inputs(x, labels, ref_emb=x, ref_labels=labels)


DEGENERATE = {
    "one_class": one_class,
    "all_different": all_different,
    "one_row": one_row,
    "no_row": no_row,
    "coincident": coincident,
    "zero_rows": zero_rows,
    "empty_tuple": empty_tuple,
    "same_object_as_reference": same_object_as_reference,
}
