"""Softmax losses in single precision where exponentials are as far apart as they can be."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import losses
from losslib.distances import CosineSimilarity
from losslib.kernels import blocked_softmax, explain, plain
from losslib.kernels.blocked_softmax import SPAN
from losslib.kernels.matrix import Matrix
from losslib.kernels.row_blocks import RowBlocks
from losslib.losses import InstanceLoss, NCALoss


def opposite(rows: int) -> tuple[Tensor, Tensor]:
    """A class of two rows that point apart, among others that all point the way of one of them."""
    x = torch.zeros(rows, 8, dtype=torch.float64)
    x[:, 0] = 1
    x[1] = -x[0]
    return x, torch.tensor([0, 0]).repeat(1 + rows // 2)[:rows] + (torch.arange(rows) > 1).long()


def zero_row(rows: int) -> tuple[Tensor, Tensor]:
    """Random rows and one without a direction."""
    x = torch.randn(rows, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[3] = 0
    return x, torch.arange(rows) % 3


def alone(rows: int) -> tuple[Tensor, Tensor]:
    """One class, which nothing stands against."""
    x = torch.randn(rows, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return x, torch.zeros(rows, dtype=torch.int64)


@pytest.mark.parametrize("made", [opposite, zero_row, alone])
@pytest.mark.parametrize("rows", [2, 12, 600])
@pytest.mark.parametrize(
    "loss",
    [
        NCALoss(softmax_scale=42.0, distance=CosineSimilarity()),
        NCALoss(softmax_scale=18.9),
        InstanceLoss(gamma=42.0),
        InstanceLoss(),
    ],
    ids=["NCA 42", "NCA 18.9", "Instance 42", "Instance 64"],
)
def test_as_in_double_precision(loss: Any, rows: int, made: Any) -> None:
    if rows == 2 and made is zero_row:
        rows = 4
    x, y = made(rows)
    one, two = x.float().requires_grad_(), x.clone().requires_grad_()
    value = loss(one, y)
    value.backward()
    with plain():
        right = loss(two, y)
        right.backward()
    assert one.grad is not None
    torch.testing.assert_close(value.double(), right, rtol=1e-5, atol=1e-6)
    ours, theirs = one.grad.double(), two.grad
    if made is zero_row:  # at a row without a direction there is no gradient to compare
        assert bool(ours[3].isfinite().all())
        ours, theirs = ours[torch.arange(rows) != 3], theirs[torch.arange(rows) != 3]
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_both_forms_are_among_these() -> None:
    assert "dense form" in explain(NCALoss(softmax_scale=18.9), 12)
    assert "blocked form" in explain(InstanceLoss(gamma=42.0), 600)


STEEP = [
    losses.SupConLoss(temperature=0.01),
    losses.NTXentLoss(temperature=0.01),
    losses.DecoupledContrastiveLoss(temperature=0.005),
    losses.MultiSimilarityLoss(alpha=2, beta=200),
    losses.MultiSimilarityLoss(alpha=300, beta=60),
    losses.CircleLoss(gamma=256),
    NCALoss(softmax_scale=60),
    InstanceLoss(gamma=100),
]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("rows", [200, 400])
@pytest.mark.parametrize("loss", STEEP, ids=lambda loss: type(loss).__name__)
def test_steep_slopes_are_no_subnormal_numbers(
    loss: Any, rows: int, apart: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which would take tens of times as long to multiply."""
    least: list[float] = []

    def seen(of: Any) -> Any:
        def pull(self: Any, *given: Any, **how: Any) -> Any:
            slope = next(entry for entry in given if isinstance(entry, Tensor))
            least.append(torch.where(slope == 0, 1.0, slope.abs()).amin().item())
            return of(self, *given, **how)

        return pull

    monkeypatch.setattr(Matrix, "back", seen(Matrix.back))
    monkeypatch.setattr(RowBlocks, "pull", seen(RowBlocks.pull))
    monkeypatch.setattr(blocked_softmax, "REACH", SPAN)  # no steep options in symmetric blocks
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 8
    centres = torch.randn(8, 64, generator=generator)
    for noise in (0.1, 0.5, 8.0):  # classes far apart, and not
        x = (centres[y] + noise * torch.randn(rows, 64, generator=generator)).requires_grad_()
        others = (centres[y] + noise * torch.randn(rows, 64, generator=generator), y) if apart else ()
        loss(x, y, None, *others).backward()
    assert least
    assert min(least) > torch.finfo(torch.float32).tiny
