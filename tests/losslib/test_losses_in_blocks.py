"""Losses that work in blocks, against whole cubes; the memory of the dynamic soft margin."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import catalog, losses
from tests.oracles import oracle
from tests.oracles.triplet import gaps_of, histogram_of, weighed_by


def rows(count: int, seed: int, size: int = 5) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def value(name: str, x: Tensor, labels: Any, *more: Any, **options: Any) -> float:
    return float(catalog.get(name)(**options)(x, labels, *more).detach())


PAIR = (torch.tensor([0]), torch.tensor([1]), torch.tensor([2]))  # anchor 0, positive 1, negative 2


class TestBlocks:
    """Sizes and options at which sums go block by block, against dense forms."""

    LABELS = torch.cat([torch.zeros(75, dtype=torch.int64), torch.arange(1, 26).repeat(3)])

    @staticmethod
    def check(loss: Any, expected: Any, x: Tensor, rtol: float = 1e-9) -> None:
        leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, want = loss(leaf), expected(other)
        torch.testing.assert_close(got, want, rtol=rtol, atol=0)
        got.backward()
        want.backward()
        scale = float(other.grad.abs().max())  # type: ignore[union-attr]
        torch.testing.assert_close(leaf.grad, other.grad, rtol=0, atol=1e3 * rtol * scale)

    def cubes(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Cosines, and masks of the own class (with the row itself) and of the others."""
        unit = torch.nn.functional.normalize(x, dim=1)
        same = self.LABELS[:, None] == self.LABELS
        return unit @ unit.T, same, ~same

    def test_smooth_ap_and_pnp(self) -> None:
        def counted(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            s, same, other = self.cubes(x)
            before = torch.sigmoid((s[:, None, :] - s[:, :, None]) / 0.05)  # anchor, item, other
            near = (before * same[:, None, :]).sum(2) + 0.5
            return near, (before * other[:, None, :]).sum(2), same.double()

        def smooth_ap(x: Tensor) -> Tensor:
            near, far, same = counted(x)
            return (1 - (near / (near + far) * same).sum(1) / same.sum(1)).mean()

        def pnp(x: Tensor) -> Tensor:
            _, far, same = counted(x)
            return ((far * same).sum(1) / same.sum(1)).mean()

        x = rows(150, 1)
        self.check(lambda leaf: losses.SmoothAPLoss(temperature=0.05)(leaf, self.LABELS), smooth_ap, x)
        self.check(lambda leaf: losses.PNPLoss(anneal=0.05)(leaf, self.LABELS), pnp, x)

    def test_selectively_contrastive_triplets(self) -> None:
        def expected(x: Tensor) -> Tensor:
            s, same, other = self.cubes(x)
            near, far = s[:, :, None], s[:, None, :]
            values = torch.where(
                far > near, far, torch.nn.functional.softplus((far - near) / 0.1, threshold=60)
            )
            positive = same & ~torch.eye(len(x), dtype=torch.bool)
            return values[positive[:, :, None] & other[:, None, :]].mean()

        loss = losses.SelectivelyContrastiveTripletLoss()
        self.check(lambda leaf: loss(leaf, self.LABELS), expected, rows(150, 2))

    def test_dynamic_soft_margin(self) -> None:
        def expected(x: Tensor) -> Tensor:
            s, same, other = self.cubes(x)
            d = (2 - 2 * s).clamp_min(1e-30).sqrt()
            positive = same & ~torch.eye(len(x), dtype=torch.bool)
            gaps = (d[:, :, None] - d[:, None, :])[positive[:, :, None] & other[:, None, :]]
            place = (gaps.detach() + 2) / 0.4
            below = place.floor().long()
            share = place - below
            nodes = torch.zeros(11, dtype=torch.float64).index_add(0, below, 1 - share)
            cdf = nodes.index_add(0, below + 1, share).cumsum(0) / len(gaps)
            return (cdf[below] * gaps).mean()

        self.check(
            lambda leaf: losses.DynamicSoftMarginLoss().double()(leaf, self.LABELS),
            expected,
            rows(150, 3),
            1e-7,
        )

    @pytest.mark.parametrize("alpha", [85.0, 70.0, 60.0])
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
    def test_angular_at_wide_angles_sums_in_logarithms(self, alpha: float, dtype: torch.dtype) -> None:
        x, labels = rows(12, 4), torch.arange(4).repeat(3)
        want = float(oracle("AngularLoss").value(x, labels, options={"alpha": alpha}))
        got = losses.AngularLoss(alpha=alpha)(x.to(dtype), labels)
        assert float(got) == pytest.approx(want, rel=1e-9 if dtype == torch.float64 else 1e-4)


class TestMemory:
    """The memory of the dynamic soft margin loss."""

    def test_a_second_batch_moves_it_by_the_momentum(self) -> None:
        loss = losses.DynamicSoftMarginLoss(momentum=0.25).double()
        labels = torch.tensor([0, 0, 1, 1, 0])
        first, second = rows(5, 10), rows(5, 11)
        loss(first, labels)
        batches = [oracle("DynamicSoftMarginLoss").batch(x, labels) for x in (first, second)]
        before, own = (histogram_of(gaps_of(batch), -2.0, 10) for batch in batches)
        memory = [0.75 * m + 0.25 * h for m, h in zip(before, own, strict=True)]
        want = weighed_by(gaps_of(batches[1]), memory, -2.0, batches[1])["loss"].values[0]
        assert float(loss(second, labels)) == pytest.approx(float(want), rel=1e-9)
        assert loss.histogram.tolist() == pytest.approx(memory, rel=1e-9)

    def test_only_a_call_in_training_mode_moves_it(self) -> None:
        loss, labels = losses.DynamicSoftMarginLoss(), torch.tensor([0, 0, 1, 1, 0])
        loss(rows(5, 10), labels)
        kept = loss.histogram.clone()
        loss.loss_terms(rows(5, 11), labels)
        loss.pair_weights(rows(5, 11), labels)
        loss.eval()(rows(5, 11), labels)
        loss.train()(rows(5, 11), torch.arange(5))  # no triplet
        assert torch.equal(loss.histogram, kept)
        with pytest.raises(ValueError, match="labels"):
            loss(rows(5, 11), labels[:4])
        assert torch.equal(loss.histogram, kept)
        loss(rows(5, 11), labels)
        assert not torch.equal(loss.histogram, kept)

    def test_it_survives_state_dict(self) -> None:
        loss, other = losses.DynamicSoftMarginLoss(), losses.DynamicSoftMarginLoss()
        loss(rows(5, 10), torch.tensor([0, 0, 1, 1, 0]))
        other.load_state_dict(loss.state_dict())
        assert torch.equal(other.histogram, loss.histogram)
        assert float(loss.histogram.sum()) == pytest.approx(1.0)
