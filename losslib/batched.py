"""The backward pass of a large batch, a few anchors at a time.

The distance matrix of B anchors and R references and everything computed from it need B x R memory. Where a
loss is a sum over anchors divided by numbers such as the count of positive pairs, a chunk of anchors gives
its share of value and gradient once those numbers are known. So the terms are made twice for each chunk:
once to count, without gradients, and once for the gradient. Where the loss has a fused form in blocks, whose
memory is linear in the batch anyway, that is taken instead: it is many times faster, and some losses whose
anchors depend on each other have one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from losslib.base import BaseLoss, PairLoss
from losslib.direct import DirectLoss
from losslib.inputs import Batch
from losslib.pair_matrix import Pairs
from losslib.params import Integer, Param
from losslib.precision import without_autocast
from losslib.proxies import ProxyLoss
from losslib.reducers import MeanReducer
from losslib.shares import Ledger, share_of
from losslib.terms import Term

__all__ = ["anchor_batched_backward"]

_FEW = 1 << 18  # entries of a matrix that is light as a whole
_SIZE = Param(1, valid=Integer(1), name="batch_size")


def anchor_batched_backward(
    loss: nn.Module,
    embeddings: Tensor,
    labels: Tensor,
    batch_size: int,
    *,
    ref_emb: Tensor | None = None,
    ref_labels: Tensor | None = None,
) -> Tensor:
    """Like `loss(embeddings, labels).backward()`, in memory linear in the batch.

    Gradients are added to everything the embeddings, the references and the loss's own parameters depend on;
    they equal those of the full backward pass up to rounding. Nothing is added when an error is raised.

    Args:
        loss: a loss of losslib whose terms each belong to one anchor, or that has a fused form in blocks.
        embeddings: (B, D), floating; every one is an anchor.
        labels: (B,).
        batch_size: number of anchors that are worked on at a time; the memory is batch_size x R. A fused form
            in blocks has its own size (`losslib.kernels.explain` says whether a loss takes one).
        ref_emb: (R, D); positives and negatives come from it. None: the embeddings themselves.
        ref_labels: (R,).

    Returns the loss, 0-d, detached.

    Raises ValueError, with the reason, for a reducer that does not split by anchor, and for a loss that does
    not and has no fused form in blocks (DecoupledContrastiveLoss with sigma has one); ShapeError or
    TypeError for inputs that do not fit. A loss that compares references with each other (the swap of
    TripletMarginLoss, AngularLoss with references) holds their R x R matrix all the same.
    """
    size = _SIZE.check(batch_size, "anchor_batched_backward")
    checked = _checked(loss)
    batch = checked.read(embeddings, labels, None, ref_emb, ref_labels)
    with without_autocast(embeddings):
        work = _Backward(checked, batch, size)
        value = work.run()
    work.hand_over(embeddings, ref_emb)
    return value


def _checked(loss: nn.Module) -> BaseLoss:
    """The loss, or a ValueError where only its own call gives its value."""
    if not isinstance(loss, BaseLoss):
        raise ValueError(
            f"anchor_batched_backward: takes one loss of losslib, got {type(loss).__name__}; "
            "call it for each loss inside"
        )
    if type(loss).forward not in (BaseLoss.forward, DirectLoss.forward):
        raise _refusal(loss, "a call of it does more than reduce its terms")
    return loss


def _refusal(loss: BaseLoss, reason: str) -> ValueError:
    return ValueError(f"anchor_batched_backward: {type(loss).__name__} does not split by anchor: {reason}")


class _Backward:
    """Value and gradients of one loss on one batch, chunk by chunk."""

    def __init__(self, loss: BaseLoss, batch: Batch, size: int) -> None:
        self.loss, self.size = loss, size
        self.unsplit = loss.not_by_anchor(batch.ref_emb is not None)
        x = batch.embeddings.detach().requires_grad_()
        y = None if batch.ref_emb is None else batch.ref_emb.detach().requires_grad_()
        self.batch = replace(batch, embeddings=x, ref_emb=y)
        self.parameters = [p for p in loss.parameters() if p.requires_grad]
        self.inputs = [x, *([] if y is None else [y]), *self.parameters]
        self.gradients: list[Tensor | None] = [None] * len(self.inputs)
        self.penalties: dict[str, Tensor] = {}

    def run(self) -> Tensor:
        """The value; the gradients are kept."""
        total = self._in_one_pass()
        if total is not None:
            return total + self._penalised()
        if self.unsplit:
            raise _refusal(self.loss, self.unsplit)
        return self._in_chunks()

    def _in_one_pass(self) -> Tensor | None:
        """The value by a fused form that is light by itself, without penalties; None where there is none."""
        from losslib.kernels.run import LINEAR, fused  # which imports the losses

        batch = self.batch
        few = len(batch.embeddings) * len(batch.references) <= _FEW
        # what does not split has no chunks to be taken in
        forms = (*LINEAR, "dense") if self.unsplit and few else LINEAR
        with torch.inference_mode(False), torch.enable_grad():
            value = fused(self.loss, batch, forms)
            return None if value is None else self._differentiated(value)

    def _in_chunks(self) -> Tensor:
        ledger, drawn = Ledger(), _random_state(self.batch.embeddings)
        self._check_rows()
        _set_random_state(self.batch.embeddings, drawn)
        with torch.no_grad():
            for chunk in self._chunks():
                self._share(chunk, ledger)
        ledger.close()
        _set_random_state(self.batch.embeddings, drawn)  # the same triplets are drawn again
        total = self.batch.embeddings.new_zeros(())
        with torch.inference_mode(False), torch.enable_grad():
            for chunk in self._chunks():
                total = total + self._differentiated(self._share(chunk, ledger))
        return total + self._penalised()

    def _penalised(self) -> Tensor:
        """What does not belong to an anchor: penalties on embeddings and on the loss's own parameters."""
        total = self.batch.embeddings.new_zeros(())
        with torch.inference_mode(False), torch.enable_grad():
            whole = self.loss._with_penalties({}, self.batch)
            for penalty in (*self.penalties.values(), *(term.losses for term in whole.values())):
                total = total + self._differentiated(penalty)
        return total

    def _check_rows(self) -> None:
        """Refuse a loss that did not say that the terms of an anchor depend on the distances of others."""
        loss = self.loss
        if not isinstance(loss, PairLoss) or type(loss).compute is not PairLoss.compute:
            return
        chunk = next(self._chunks(max(self.size, 2)), None)
        if chunk is None:
            return
        with torch.inference_mode(False), torch.enable_grad():
            values = loss.distance(chunk.embeddings, chunk.ref_emb).detach().requires_grad_()
            terms = loss.terms(Pairs(values, chunk, loss.distance)).values()
            sums = [term.per_anchor(len(values))[0][::2].sum() for term in terms if not term.reduced]
            pulls = [s for s in sums if s.requires_grad]
            if not pulls:
                return
            (pull,) = torch.autograd.grad(
                pulls, values, [torch.ones_like(s) for s in pulls], allow_unused=True
            )
        if pull is not None and bool(pull[1::2].any()):
            raise ValueError(
                f"anchor_batched_backward: {type(loss).__name__} does not split by anchor: the terms of one "
                "anchor depend on the distances of others"
            )

    def _chunks(self, size: int | None = None) -> Iterator[Batch]:
        """The batch, so many anchors at a time; a batch that is its own reference refers to all of itself."""
        whole, size = self.batch, size or self.size
        assert whole.labels is not None
        among_themselves = whole.ref_emb is None and not isinstance(self.loss, ProxyLoss)
        for start in range(0, len(whole.embeddings), size):
            stop = min(start + size, len(whole.embeddings))
            chunk = replace(whole, embeddings=whole.embeddings[start:stop], labels=whole.labels[start:stop])
            if among_themselves:
                chunk.ref_emb, chunk.ref_labels = whole.embeddings, whole.labels
                chunk.own, chunk.among_itself = (
                    torch.arange(start, stop, device=whole.embeddings.device),
                    True,
                )
            yield chunk

    def _share(self, chunk: Batch, ledger: Ledger) -> Tensor:
        """What a chunk adds to the loss, 0-d. Terms that are already reduced are kept apart, once."""
        reducer: Any = self.loss.reducer if "reducer" in self.loss.parts else None
        total = chunk.embeddings.new_zeros(())
        by_anchor: Any = getattr(self.loss, "terms_by_anchor", None)  # of a loss that reduces itself
        if by_anchor is not None:
            distance = self.loss.distance
            pairs = Pairs(distance(chunk.embeddings, chunk.ref_emb), chunk, distance)
            for name, (term, weight) in by_anchor(pairs).items():
                total = total + weight * share_of(MeanReducer(), name, term, ledger, chunk)
            return total
        for name, term in self.loss.compute(chunk).items():
            if term.reduced:
                self._keep_penalty(name, term)
            else:
                total = total + share_of(reducer, name, term, ledger, chunk)
        return total

    def _keep_penalty(self, name: str, term: Term) -> None:
        """A penalty on the loss's own parameters is the same in each chunk that has something to do."""
        if not torch.is_grad_enabled():
            return
        value, outside = term.losses, self.inputs[: len(self.inputs) - len(self.parameters)]
        if value.requires_grad:
            found = torch.autograd.grad(value, outside, allow_unused=True, retain_graph=True)
            if any(gradient is not None for gradient in found):
                raise ValueError(
                    f"anchor_batched_backward: {type(self.loss).__name__} does not split by anchor: its term "
                    f"{name!r} is reduced over all anchors at once"
                )
        kept = self.penalties.get(name)
        if kept is None or bool(value.detach().abs() > kept.detach().abs()):
            self.penalties[name] = value

    def _differentiated(self, value: Tensor) -> Tensor:
        """The value without its graph; its gradients are added to those kept."""
        if value.requires_grad:
            found = torch.autograd.grad(value, self.inputs, allow_unused=True)
            for place, gradient in enumerate(found):
                kept = self.gradients[place]
                if gradient is not None:
                    self.gradients[place] = gradient if kept is None else kept + gradient
        return value.detach()

    def hand_over(self, embeddings: Tensor, ref_emb: Tensor | None) -> None:
        """Add the gradients to what the caller gave."""
        outer = [embeddings, *([] if ref_emb is None else [ref_emb])]
        targets: list[Tensor] = []
        gradients: list[Tensor] = []
        for place, target in enumerate([*outer, *self.parameters]):
            gradient = self.gradients[place]
            if not target.requires_grad or (gradient is None and place >= len(outer)):
                continue
            targets.append(target)
            gradients.append(torch.zeros_like(target) if gradient is None else gradient.to(target.dtype))
        if not targets:
            raise ValueError("anchor_batched_backward: nothing given requires a gradient")
        torch.autograd.backward(targets, gradients)


def _random_state(like: Tensor) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(like.device)] if like.device.type == "cuda" else states


def _set_random_state(like: Tensor, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if like.device.type == "cuda":
        torch.cuda.set_rng_state(states[1], like.device)
