"""Miners that draw at random, and the cap on the tuples of an anchor."""

from typing import Any

import pytest
import torch

from losslib import catalog, miners
from losslib.distances import LpDistance
from tests.losslib import plain_miners as plain
from tests.losslib.largest import Largest
from tests.losslib.mining import NAMES, SETS, X, Y


class TestRandom:
    def test_distance_weighted_draws_in_proportion_to_the_inverse_density(self) -> None:
        # one anchor with one positive and negatives at known distances on the unit sphere in 6 dimensions
        distances = torch.tensor([0.3, 0.6, 0.9, 1.2, 1.39, 1.5], dtype=torch.float64)
        cosine = 1 - distances.square() / 2
        x = torch.zeros(8, 6, dtype=torch.float64)
        x[:2, 0] = 1
        x[2:, 0], x[2:, 1] = cosine, (1 - cosine.square()).sqrt()
        labels = torch.tensor([0, 0, 1, 2, 3, 4, 5, 6])
        d = distances.clamp(min=0.5)
        weight = 1 / (d**4 * (1 - d**2 / 4) ** 1.5) * (distances < 1.4)
        torch.manual_seed(0)
        miner, drawn = miners.DistanceWeightedMiner(), torch.zeros(8, dtype=torch.float64)
        times = 4000
        for _ in range(times // 2):
            a, p, n = miner(x, labels)
            assert a.tolist() == [0, 1]
            assert p.tolist() == [1, 0]
            drawn += torch.bincount(n, minlength=8)
        share = weight / weight.sum()
        spread = (share * (1 - share) / times).sqrt()
        assert bool(((drawn[2:] / times - share).abs() <= 4.5 * spread).all())

    def test_distance_weighted_takes_each_positive_pair_once(self) -> None:
        a, p, n = miners.DistanceWeightedMiner(nonzero_loss_cutoff=2.5)(X, Y)
        positive, _ = plain.pairs_of(Y, None)
        assert sorted(zip(a.tolist(), p.tolist(), strict=True)) == positive
        assert bool((Y[a] != Y[n]).all())

    def test_distance_weighted_in_many_dimensions(self) -> None:
        x = torch.randn(20, 512, generator=torch.Generator().manual_seed(3))
        x[10:] += x[:10] * 0.8  # some negatives come within reach
        y = torch.arange(20) % 10
        y[10:] = (y[10:] + 1) % 10
        a, _, n = miners.DistanceWeightedMiner()(x, y)
        reach = (LpDistance()(x) < 1.4) & (y.unsqueeze(1) != y)
        assert set(a.tolist()) == set(reach.any(1).nonzero().squeeze(1).tolist())
        assert len(a) > 0
        assert bool(reach[a, n].all())

    def test_uniform_histogram_fills_every_bin_alike(self) -> None:
        d = torch.tensor([0.0, 0.01, 0.02, 0.03, 0.5, 1.0], dtype=torch.float64)
        x = torch.stack([d, torch.zeros(6, dtype=torch.float64)], 1)
        miner = miners.UniformHistogramMiner(4, 3, 2, distance=LpDistance(normalize_embeddings=False))
        one = torch.zeros(1, 2, dtype=torch.float64)
        near = miner(one, torch.tensor([0]), x, torch.zeros(6, dtype=torch.int64))
        found = torch.bucketize(d[near[1]], torch.tensor([0.25, 0.5, 0.75]), right=True)
        assert torch.bincount(found, minlength=4).tolist() == [3, 0, 3, 3]  # the second bin is empty
        assert len(near[2]) == 0
        far = miner(one, torch.tensor([1]), x, torch.zeros(6, dtype=torch.int64))
        assert len(far[0]) == 0
        assert len(far[3]) == 2 * 3

    @pytest.mark.parametrize("name", NAMES)
    def test_drawn_by_torchs_generator_alone(self, name: str) -> None:
        miner = catalog.miners()[name](tuples_per_anchor=2)
        results = []
        for _ in range(2):
            torch.manual_seed(5)
            results.append(plain.listed(miner(X, Y)))
        assert results[0] == results[1]
        drawn = {str(plain.listed(miner(X, Y))) for _ in range(20)}
        # those two find one pair of each side an anchor: a cap of 2 leaves no choice
        assert (len(drawn) > 1) == (name not in ("BatchHardMiner", "BatchEasyHardMiner"))

    @pytest.mark.parametrize("name", sorted(set(NAMES) - {"DistanceWeightedMiner", "UniformHistogramMiner"}))
    def test_nothing_is_drawn_without_a_cap(self, name: str) -> None:
        before = torch.get_rng_state()
        catalog.miners()[name]()(X, Y)
        assert torch.equal(before, torch.get_rng_state())


class TestCap:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("given", SETS, ids=["batch", "reference"])
    def test_at_most_so_many_of_one_anchor(self, name: str, given: tuple[Any, ...]) -> None:
        made = catalog.miners()[name]
        every, some = made()(*given), made(tuples_per_anchor=2)(*given)
        for k in (0,) if len(every) == 3 else (0, 2):
            counts = torch.bincount(every[k], minlength=14)
            assert torch.bincount(some[k], minlength=14).tolist() == counts.clamp(max=2).tolist()
        if name not in ("DistanceWeightedMiner", "UniformHistogramMiner"):
            whole, part = plain.listed(every), plain.listed(some)
            if len(every) == 3:
                assert set(part) <= set(whole)
                assert len(set(part)) == len(part)
            else:
                assert set(part[0]) <= set(whole[0])
                assert set(part[1]) <= set(whole[1])

    @pytest.mark.parametrize("kept", [3, 6])  # of 10: fewer than half, and more
    def test_every_triplet_is_equally_likely_across_blocks(
        self, monkeypatch: pytest.MonkeyPatch, kept: int
    ) -> None:
        monkeypatch.setattr("losslib.miners.blocks._BLOCK", 1)  # blocks of four positive pairs
        y = torch.tensor([0] * 6 + [1] * 2)
        x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        miner = miners.TripletMarginMiner(margin=10.0, tuples_per_anchor=kept)
        times, drawn = 1000, torch.zeros(8, 8)
        for _ in range(times):
            a, p, n = miner(x, y)
            first = a == 0
            assert int(first.sum()) == kept
            drawn.index_put_((p[first], n[first]), torch.ones(kept), accumulate=True)
        share, expected = drawn[1:6, 6:] / times, kept / 10  # 5 positives and 2 negatives: 10 triplets
        assert bool((share - expected).abs().max() < 4.5 * (expected * (1 - expected) / times) ** 0.5)


@pytest.mark.parametrize("name", ["TripletMarginMiner", "AngularMiner"])
def test_triplets_are_never_all_written_out(name: str) -> None:
    rows = 200
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(0))
    y = torch.arange(rows) % 4  # 200 * 49 * 150 triplets
    options = {"margin": 1.0} if name == "TripletMarginMiner" else {"angle": 1.0}
    miner = catalog.miners()[name](**options, tuples_per_anchor=5)
    with Largest() as largest:
        mined = miner(x, y)
    assert len(mined[0]) == 5 * rows
    assert largest.numel <= 2 << 18  # a block of comparisons, as rows and columns
    assert rows * 49 * 150 > 2 * (2 << 18)
