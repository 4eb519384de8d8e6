"""The value of a loss by its fused form, where it has one for the situation."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from losslib.inputs import Batch
from losslib.kernels import plain
from losslib.kernels.blocked_softmax import UnevenError
from losslib.kernels.choice import Situation, chosen
from losslib.kernels.even_masks import even_masks
from losslib.kernels.forms import Kernel, kernels
from losslib.kernels.function import Found, Inputs, apply
from losslib.kernels.hinges_by_rows import by_beta
from losslib.kernels.masks import Masks
from losslib.kernels.matrix import Matrix
from losslib.kernels.scratch import lease
from losslib.precision import transforming, values_are_known

LINEAR = ("blocked", "rows")  # forms whose memory grows with the rows, not with their pairs
FORMS = ("own", "dense", *LINEAR)


def fused(loss: Any, batch: Batch, forms: tuple[str, ...] = FORMS) -> Tensor | None:
    """The reduced loss without penalties, 0-d, or None where it takes none of these forms."""
    kernel = kernels().get(type(loss))
    if kernel is None or batch.labels is None or transforming():
        return None
    here = _situation(batch)
    form, _, even = chosen(loss, kernel, here)
    if form not in forms:
        return None
    if form == "own":
        assert kernel.blocked is not None
        short: Tensor = kernel.blocked(loss, batch)
        return short
    inputs = Inputs(batch.embeddings, batch.ref_emb, kernel.learned(loss))
    graph = torch.is_grad_enabled()
    known = here.device == "cpu" and here.values_known
    needs = tuple([graph and given is not None and given.requires_grad for given in inputs])

    def run(given: Inputs) -> Found:
        if not known:
            return found(given)
        with lease():
            return found(given)

    def found(given: Inputs) -> Found:
        if even and (masks := even_masks(batch, given.embeddings)):
            ordered = given._replace(embeddings=masks.batch.embeddings)
            return _dense(loss, kernel, ordered, masks, needs)._replace(places=masks.places)
        if form == "blocked":
            assert kernel.blocked is not None
            with suppress(UnevenError):
                blocked: Found = kernel.blocked(loss, given.embeddings, batch, any(needs))
                return blocked
        if form in LINEAR:
            assert kernel.by_rows is not None
            by_rows: Found = kernel.by_rows(loss, given, batch, needs)
            return by_rows
        return _dense(loss, kernel, given, Masks(batch, known), needs)

    def again(given: Inputs) -> Tensor:
        return _plainly(loss, replace(batch, embeddings=given.embeddings, ref_emb=given.references))

    return apply(inputs, run, again)


def _situation(batch: Batch) -> Situation:
    x, labels, apart = batch.embeddings, batch.labels, batch.ref_emb
    assert labels is not None
    return Situation(
        x.shape[0],
        None if apart is None else apart.shape[0],
        x.device.type,
        x.shape[1],
        batch.indices is not None or batch.masks is not None,
        not labels.is_floating_point(),
        values_are_known(x),
    )


def _dense(loss: Any, kernel: Kernel, given: Inputs, masks: Masks, needs: tuple[bool, ...]) -> Found:
    batch = masks.batch
    matrix = Matrix(given.embeddings, given.references, loss.distance, masks.known)
    assert kernel.dense is not None
    found = kernel.dense(loss, matrix.values, masks, kernel.own(loss, batch))
    if not any(needs):
        return Found(found.value)
    by_x = by_y = None
    if needs[0] or needs[1]:
        by_x, by_y = matrix.back(found.slope, needs[0], needs[1], found.both, found.lifted, masks.ordered)
    by_parameter = None
    if needs[2]:
        assert batch.labels is not None
        by_parameter = by_beta(loss, found.by_own, batch.labels)
    return Found(found.value, by_x if needs[0] else None, by_y, by_parameter)


def _plainly(loss: Any, batch: Batch) -> Tensor:
    with plain():
        value: Tensor = loss._reduced(loss.compute(batch), batch.embeddings, batch.labels)
    return value
