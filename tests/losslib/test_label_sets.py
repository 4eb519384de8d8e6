"""The supervised contrastive loss of label sets."""

from typing import Any

import pytest
import torch
from torch import Tensor

from losslib import losses
from tests.oracles.softmax import multi_supcon_of_sets


def rows(count: int, seed: int, size: int = 5) -> Tensor:
    return torch.randn(count, size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class TestLabelSets:
    SETS = ({0, 1}, {0, 1, 2}, {2}, {0}, set(), {1, 2})

    @classmethod
    def labels(cls, sets: Any = None) -> Tensor:
        chosen = cls.SETS if sets is None else sets
        return torch.tensor([[c in own for c in range(4)] for own in chosen])

    @pytest.mark.parametrize("threshold", [0.1, 0.5, 2 / 3, 1.0])
    def test_overlap_decides_and_weighs(self, threshold: float) -> None:
        x = rows(6, 20).requires_grad_()
        options = {"temperature": 0.3, "threshold": threshold}
        want = multi_supcon_of_sets(x, list(self.SETS), x, list(self.SETS), True, **options)
        got = losses.MultiSupConLoss(**options)(x, self.labels())
        assert float(got.detach()) == pytest.approx(float(want.detach()), rel=1e-9)
        if float(want.detach()):
            slopes = (torch.autograd.grad(y, x)[0] for y in (got, want))
            torch.testing.assert_close(*slopes, rtol=1e-8, atol=1e-12)

    def test_a_reference_set_has_sets_too(self) -> None:
        x, r, others = rows(6, 20), rows(3, 21), [{0, 1}, {2}, {3}]
        want = multi_supcon_of_sets(x, list(self.SETS), r, others, False)
        loss = losses.MultiSupConLoss()
        got = loss(x, self.labels(), ref_emb=r, ref_labels=self.labels(others))
        assert float(got) == pytest.approx(float(want), rel=1e-9)
        weights = loss.pair_weights(x, self.labels(), ref_emb=r, ref_labels=self.labels(others))
        assert weights.positive.nonzero().tolist() == [[0, 0], [1, 0], [2, 1], [3, 0], [5, 1]]

    def test_one_label_a_sample_is_sup_con(self) -> None:
        x, labels = rows(6, 20), torch.tensor([0, 1, 0, 1, 2, 2])
        one_hot = torch.nn.functional.one_hot(labels).bool()
        want = float(losses.SupConLoss()(x, labels))
        assert float(losses.MultiSupConLoss()(x, labels)) == pytest.approx(want, rel=1e-12)
        assert float(losses.MultiSupConLoss()(x, one_hot)) == pytest.approx(want, rel=1e-12)

    def test_what_are_no_sets_is_refused(self) -> None:
        loss, x = losses.MultiSupConLoss(), rows(6, 20)
        with pytest.raises(ValueError, match="MultiSupConLoss: labels must have shape"):
            loss(x, self.labels().long())
        with pytest.raises(ValueError, match=r"labels must have shape \(6,\).*got \(5,\)"):
            loss(x, self.labels()[:5])
        with pytest.raises(ValueError, match="both be boolean label sets"):
            loss(x, self.labels(), ref_emb=x, ref_labels=torch.arange(6))
        with pytest.raises(ValueError, match="4 columns"):
            loss(x, self.labels(), ref_emb=x, ref_labels=self.labels()[:, :3])
