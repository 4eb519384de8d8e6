"""The backward pass in parts in little memory: by chunks of anchors, or by a fused form in blocks."""

import gc
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from losslib.kernels import explain, plain
from losslib.losses import (
    ContrastiveLoss,
    MarginLoss,
    NTXentLoss,
    SupConLoss,
    TripletMarginLoss,
    anchor_batched_backward,
)
from losslib.regularizers import LpRegularizer
from tests.losslib.largest import Largest

LIGHT = [ContrastiveLoss, NTXentLoss, SupConLoss, TripletMarginLoss, MarginLoss]


def many(rows: int) -> tuple[Tensor, Tensor]:
    """Embeddings (rows, 4) and labels, 25 rows of each class."""
    return torch.randn(rows, 4, generator=torch.Generator().manual_seed(0)), torch.arange(rows) % (rows // 25)


def in_parts(cls: Any, x: Tensor, y: Tensor, size: int) -> int:
    """The most entries of a tensor, once value and gradient equal the plain ones of the whole batch."""
    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    gc.collect()
    with Largest() as largest:
        value = anchor_batched_backward(cls(), leaf, y, size)
    with plain():
        full = cls()(other, y)
        full.backward()
    torch.testing.assert_close(value, full.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(leaf.grad, other.grad, rtol=1e-4, atol=1e-6)
    return largest.numel


@pytest.mark.parametrize("cls", LIGHT)
def test_chunks_hold_so_many_rows_of_distances(cls: Any) -> None:
    rows, size = 500, 10
    with plain():
        largest = in_parts(cls, *many(rows), size)
    assert largest <= (1 << 16) + 4 * size * rows  # a block of triplets, or a few rows of distances
    assert largest < rows * rows


@pytest.mark.parametrize("cls", LIGHT)
def test_a_form_in_blocks_never_holds_the_matrix(cls: Any) -> None:
    assert "blocked form" in explain(cls(), 700)
    in_parts(cls, *many(700), 10)
    rows = 4000
    x, y = many(rows)
    with Largest() as largest:
        anchor_batched_backward(cls(), x.requires_grad_(), y, 10)
    assert largest.bytes <= 16 << 20  # what a thread keeps for blocks, however many the rows
    assert rows * rows * 4 > 3 * (16 << 20)


@pytest.mark.parametrize("separate", [False, True], ids=["among themselves", "against references"])
def test_a_form_in_blocks_adds_what_penalties_and_references_do(separate: bool) -> None:
    x = torch.randn(700, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.arange(700) % 20
    penalties: Any = {"embedding_regularizer": LpRegularizer(), "embedding_reg_weight": 0.5}
    loss = SupConLoss(**penalties) if separate else MarginLoss(nu=0.1, learn_beta=True, **penalties).double()
    found = []
    for whole in (True, False):
        made, leaf = deepcopy(loss), x[:400].clone().requires_grad_()
        other = x[300:].clone().requires_grad_() if separate else None
        references = {"ref_emb": other, "ref_labels": y[300:]} if separate else {}
        if whole:
            with plain():
                value = made(leaf, y[:400], **references)
                value.backward()
        else:
            value = anchor_batched_backward(made, leaf, y[:400], 50, **references)
        parameters = [parameter.grad for parameter in made.parameters()]
        found.append((value.detach(), leaf.grad, *parameters, *([] if other is None else [other.grad])))
    assert len(found[0]) == 3
    for ours, right in zip(found[1], found[0], strict=True):
        torch.testing.assert_close(ours, right)
