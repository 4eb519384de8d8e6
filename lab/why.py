"""Why did this point move: the force of every pair on one embedding, from the loss's own gradient."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lab.randomness import undisturbed
from losslib.kernels import plain
from losslib.proxies import ProxyLoss

EPS = 1e-30


class Forces(NamedTuple):
    """What pulls and pushes one embedding; a force is minus a part of the gradient, K partners of D numbers.

    Attributes:
        partners: rows of the references that the partners are, (K,) int64; for a proxy loss, rows of its
            weight.
        forces: minus dL/dd * dd/de of each partner, both directions of a pair added, (K, D).
        weights: dL/dd with the embedding as the anchor, (K,).
        back: dL/dd with the partner as the anchor, (K,); 0 where the references are a set of their own.
        values: the loss's distance d from the embedding to the partner, (K,).
        slopes: dd/de with the embedding as the anchor, (K, D).
        positive: mask of the positive pairs, (K,).
        closer: mask of the partners whose pair it pays to bring closer, (K,).
        gradient: dL/de by automatic differentiation, (D,).
        reason: why there are no partners, a sentence, or "".
    """

    partners: Tensor
    forces: Tensor
    weights: Tensor
    back: Tensor
    values: Tensor
    slopes: Tensor
    positive: Tensor
    closer: Tensor
    gradient: Tensor
    reason: str = ""

    @property
    def rest(self) -> Tensor:
        """What no pair accounts for, (D,): minus the gradient less all forces."""
        return -self.gradient - self.forces.sum(0)

    @property
    def shares(self) -> Tensor:
        """Size of each force over the sum of the sizes of all, (K,)."""
        size = torch.linalg.vector_norm(self.forces, dim=1)
        return size / size.sum().clamp_min(EPS)

    @property
    def ranked(self) -> Tensor:
        """Places of the partners with a force, the largest share first."""
        shares = self.shares
        order = shares.argsort(descending=True, stable=True)
        return order[: int((shares > 0).sum())]


def forces_on(loss: nn.Module, row: int, embeddings: Tensor, **inputs: Any) -> Forces:
    """The forces on row `row` of a batch.

    The sum of all forces is minus the gradient of the loss by that row, but for `Forces.rest`: what a loss
    takes from an embedding otherwise than through distances, such as its norm.

    Args:
        loss: any loss of the library; it is not changed.
        row: 0..B-1.
        embeddings: (B, D), floating. In double precision the sum is exact to its rounding.
        inputs: the other arguments of the loss's call: labels, indices_tuple, ref_emb, ref_labels.
    """
    loss, embeddings = copy.deepcopy(loss), embeddings.detach()
    with torch.enable_grad(), undisturbed():
        with undisturbed():  # a loss that draws triplets at random draws the same ones again below
            gradient = gradient_of(copy.deepcopy(loss), embeddings, **inputs)[row]
        if hasattr(loss, "pair_weights"):
            return _of_pairs(loss, row, embeddings, inputs, gradient)
        if isinstance(loss, ProxyLoss):
            return _of_proxies(loss, row, embeddings, inputs, gradient)
    return _none(gradient, _why_no_pairs(loss))


def gradient_of(loss: nn.Module, embeddings: Tensor, **inputs: Any) -> Tensor:
    """dL/de of every row, (B, D); arguments as in `forces_on`. The loss is called once, in its own mode."""
    with torch.enable_grad():
        leaf = embeddings.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(
            loss(leaf, **inputs), leaf, allow_unused=True, materialize_grads=True
        )
    found: Tensor = gradient
    return found


def _of_pairs(loss: Any, row: int, embeddings: Tensor, inputs: Mapping[str, Any], gradient: Tensor) -> Forces:
    found, references = loss.pair_weights(embeddings, **inputs), inputs.get("ref_emb")
    apart = references is not None
    others = embeddings if references is None else references.detach()
    values, slopes = _slopes(loss.distance, embeddings[row], others, True)
    weights = found.weights[row]
    forces = -weights.unsqueeze(1) * slopes
    back = torch.zeros_like(weights)
    if not apart:
        back = found.weights[:, row].clone()
        forces = forces - back.unsqueeze(1) * _slopes(loss.distance, embeddings[row], others, False)[1]
        # a row against itself is one entry, and both its arguments move together
        forces[row] = -weights[row] * _slope_to_itself(loss.distance, embeddings[row])
        back[row] = 0.0
    felt = torch.linalg.vector_norm(forces, dim=1) > 0
    keep = felt | found.positive[row] | found.negative[row]
    positive = found.positive[row] if apart else found.positive[row] | found.positive[:, row]
    return _kept(keep, forces, weights, back, values, slopes, positive, loss, gradient)


def _of_proxies(
    loss: ProxyLoss, row: int, embeddings: Tensor, inputs: Mapping[str, Any], gradient: Tensor
) -> Forces:
    """The proxies are the partners: their distances are caught, and the loss differentiated by them."""
    caught: list[Tensor] = []

    def catch(name: str) -> None:
        real = getattr(loss.distance, name)

        def instead(*given: Any) -> Tensor:
            caught.append(real(*given).detach().requires_grad_())
            return caught[-1]

        setattr(loss.distance, name, instead)

    proxies, count = loss.weight.detach().to(embeddings.dtype), len(loss.weight)
    values, slopes = _slopes(loss.distance, embeddings[row], proxies, True)
    for name in ("forward", "pairwise"):
        catch(name)
    with plain():  # a form in one pass asks the distance for nothing
        value = loss(embeddings, **inputs)
    del loss.distance.__dict__["forward"], loss.distance.__dict__["pairwise"]
    own = torch.arange(count, device=embeddings.device) // loss.rows_per_class == inputs["labels"][row]
    weights = torch.zeros(count, dtype=embeddings.dtype, device=embeddings.device)
    parts = torch.autograd.grad(value, caught, allow_unused=True, materialize_grads=True) if caught else ()
    for part in parts:
        if part.shape == (len(embeddings), count):
            weights = weights + part[row]
        elif part.shape == (len(embeddings),) and loss.rows_per_class == 1:
            weights = weights + torch.where(own, part[row], 0.0)  # each row against its own class
    forces = -weights.unsqueeze(1) * slopes
    every = torch.ones_like(own)
    return _kept(every, forces, weights, torch.zeros_like(weights), values, slopes, own, loss, gradient)


def _kept(
    keep: Tensor,
    forces: Tensor,
    weights: Tensor,
    back: Tensor,
    values: Tensor,
    slopes: Tensor,
    positive: Tensor,
    loss: Any,
    gradient: Tensor,
) -> Forces:
    pull = weights + back
    closer = pull < 0 if loss.distance.is_inverted else pull > 0
    return Forces(
        keep.nonzero()[:, 0],
        forces[keep].detach(),
        weights[keep],
        back[keep],
        values[keep],
        slopes[keep],
        positive[keep],
        closer[keep],
        gradient,
    )


def _slopes(distance: Any, point: Tensor, others: Tensor, anchor: bool) -> tuple[Tensor, Tensor]:
    """Distances of a point (D,) and the others (R, D), and their derivatives by the point: (R,), (R, D)."""
    leaf = point.detach().expand(len(others), -1).clone().requires_grad_()
    pair = (leaf, others.detach()) if anchor else (others.detach(), leaf)
    values = distance.pairwise(*pair)
    (slopes,) = torch.autograd.grad(values.sum(), leaf, allow_unused=True, materialize_grads=True)
    return values.detach(), slopes


def _slope_to_itself(distance: Any, point: Tensor) -> Tensor:
    leaf = point.detach().clone().requires_grad_()
    value = distance(leaf.unsqueeze(0)).sum()
    (slope,) = torch.autograd.grad(value, leaf, allow_unused=True, materialize_grads=True)
    found: Tensor = slope
    return found


def _none(gradient: Tensor, reason: str) -> Forces:
    size, empty = len(gradient), gradient.new_zeros(0)
    rows, mask = gradient.new_zeros(0, size), torch.zeros(0, dtype=torch.bool, device=gradient.device)
    index = torch.zeros(0, dtype=torch.int64, device=gradient.device)
    return Forces(index, rows, empty, empty, empty, rows, mask, mask, gradient, reason)


def _why_no_pairs(loss: Any) -> str:
    title = getattr(loss, "title", type(loss).__name__)
    if getattr(loss, "family", "") == "two-view":
        return (
            f"The {title} loss compares two views of the whole batch at once: its gradient does not come "
            "apart into pairs, so only the sum is drawn."
        )
    return (
        f"The {title} loss is no function of the distances of pairs: its gradient does not come apart into "
        "pairs, so only the sum is drawn."
    )
