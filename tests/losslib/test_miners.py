"""Miners against loops from their definitions, and against pytorch-metric-learning."""

from typing import Any

import pytest
import torch
from pytorch_metric_learning import distances as pml_distances
from pytorch_metric_learning import miners as pml
from torch import Tensor

from losslib import miners
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from losslib.types import TripletIndices
from tests.losslib import plain_miners as plain
from tests.losslib.mining import RY, SETS, R, X, Y

COMBINATIONS = [
    (p, n)
    for p in ("easy", "semihard", "hard", "all")
    for n in ("easy", "semihard", "hard", "all")
    if (p, n) not in (("semihard", "semihard"), ("semihard", "all"), ("all", "semihard"))
]


def separation(distance: Any, x: Tensor, r: Tensor | None) -> list[list[float]]:
    matrix = distance(x, r)
    found: list[list[float]] = (-matrix if distance.is_inverted else matrix).tolist()
    return found


@pytest.mark.parametrize("given", SETS, ids=["batch", "reference"])
@pytest.mark.parametrize("distance", [LpDistance(), DotProductSimilarity()], ids=["Lp", "dot"])
class TestAgainstLoops:
    def pairs(self, given: tuple[Any, ...], distance: Any) -> Any:
        r, ry = given[2:] or (None, None)
        return separation(distance, given[0], r), *plain.pairs_of(given[1], ry)

    @pytest.mark.parametrize("kind", ["all", "hard", "semihard", "easy"])
    def test_triplet_margin(self, given: Any, distance: Any, kind: str) -> None:
        d, positive, negative = self.pairs(given, distance)
        mined = miners.TripletMarginMiner(0.3, kind, distance=distance)(*given)
        assert isinstance(mined, TripletIndices)
        expected = plain.triplet_margin(d, positive, negative, 0.3, kind)
        assert expected
        assert plain.listed(mined) == sorted(expected)

    def test_multi_similarity(self, given: Any, distance: Any) -> None:
        d, positive, negative = self.pairs(given, distance)
        mined = miners.MultiSimilarityMiner(0.05, distance=distance)(*given)
        near, far = plain.multi_similarity(d, positive, negative, 0.05)
        assert 0 < len(near) < len(positive) or 0 < len(far) < len(negative)
        assert plain.listed(mined) == (sorted(near), sorted(far))

    def test_pair_margin(self, given: Any, distance: Any) -> None:
        d, positive, negative = self.pairs(given, distance)
        sign = -1 if distance.is_inverted else 1
        mined = miners.PairMarginMiner(0.5, 0.9, distance=distance)(*given)
        near = [(i, j) for i, j in positive if d[i][j] > sign * 0.5]
        far = [(i, j) for i, j in negative if d[i][j] < sign * 0.9]
        assert near
        assert far
        assert plain.listed(mined) == (sorted(near), sorted(far))

    @pytest.mark.parametrize("share", [0.07, 0.5, 1.0])
    def test_hdc(self, given: Any, distance: Any, share: float) -> None:
        d, positive, negative = self.pairs(given, distance)
        near, far = plain.hardest_share(d, positive, negative, share)
        mined = miners.HDCMiner(share, distance=distance)(*given)
        # (i, j) and (j, i) tie within a batch: compare what was chosen by its distances
        assert sorted(round(d[i][j], 9) for i, j in near) == sorted(
            round(d[i][j], 9) for i, j in plain.listed(mined)[0]
        )
        assert sorted(round(d[i][j], 9) for i, j in far) == sorted(
            round(d[i][j], 9) for i, j in plain.listed(mined)[1]
        )

    @pytest.mark.parametrize(("pos", "neg"), COMBINATIONS)
    def test_batch_easy_hard(self, given: Any, distance: Any, pos: str, neg: str) -> None:
        d, positive, negative = self.pairs(given, distance)
        mined = miners.BatchEasyHardMiner(pos, neg, distance=distance)(*given)
        near, far = plain.easy_hard(d, positive, negative, pos, neg)
        assert near
        assert plain.listed(mined) == (sorted(near), sorted(far))
        if (pos, neg) == ("hard", "hard"):
            triplets = miners.BatchHardMiner(distance=distance)(*given)
            assert isinstance(triplets, TripletIndices)
            both = sorted((a, p, n) for (a, p), (_, n) in zip(near, far, strict=True))
            assert plain.listed(triplets) == both

    def test_allowed_ranges(self, given: Any, distance: Any) -> None:
        d, positive, negative = self.pairs(given, distance)
        sign = -1 if distance.is_inverted else 1
        low, high = sorted((sign * d[i][j] for i, j in positive[::7]))[:2]
        mined = miners.BatchEasyHardMiner(
            "hard", "all", allowed_pos_range=(low, high), allowed_neg_range=[-0.5, 1.2], distance=distance
        )(*given)
        kept = [(i, j) for i, j in positive if low <= sign * d[i][j] <= high]
        far = [(i, j) for i, j in negative if -0.5 <= sign * d[i][j] <= 1.2]
        assert plain.listed(mined) == (sorted(plain.easy_hard(d, kept, far, "hard", "all")[0]), sorted(far))


@pytest.mark.parametrize("given", SETS, ids=["batch", "reference"])
@pytest.mark.parametrize("normalise", [True, False])
def test_angular_against_loops(given: tuple[Any, ...], normalise: bool) -> None:
    x, y = given[:2]
    r, ry = given[2:] or (x, None)
    rows = (x, r) if not normalise else (x / x.norm(dim=1, keepdim=True), r / r.norm(dim=1, keepdim=True))
    mined = miners.AngularMiner(35.0, distance=LpDistance(normalize_embeddings=normalise))(*given)
    expected = plain.angular(*rows, *plain.pairs_of(y, ry), 35.0)
    assert expected
    assert plain.listed(mined) == sorted(expected)


class TestAgainstPml:
    """On the same float64 inputs; random miners are compared by what they may draw."""

    SAME: tuple[tuple[str, dict[str, Any]], ...] = (
        ("BatchHardMiner", {}),
        ("BatchEasyHardMiner", {}),
        ("BatchEasyHardMiner", {"pos_strategy": "hard", "neg_strategy": "easy"}),
        ("BatchEasyHardMiner", {"allowed_pos_range": (0.2, 1.5), "allowed_neg_range": (0.4, 1.0)}),
        ("TripletMarginMiner", {"margin": 0.2, "type_of_triplets": "all"}),
        ("TripletMarginMiner", {"margin": 0.2, "type_of_triplets": "semihard"}),
        ("MultiSimilarityMiner", {}),
        ("PairMarginMiner", {}),
        ("HDCMiner", {"filter_percentage": 0.3}),
        ("AngularMiner", {"angle": 30}),
    )

    @pytest.mark.parametrize(("name", "options"), SAME)
    @pytest.mark.parametrize("reference", [False, True])
    def test_same_tuples(self, name: str, options: dict[str, Any], reference: bool) -> None:
        x, r = X / X.norm(dim=1, keepdim=True), R / R.norm(dim=1, keepdim=True)
        given = (x, Y, r, RY) if reference else (x, Y)
        ours, theirs = getattr(miners, name)(**options)(*given), getattr(pml, name)(**options)(*given)
        if name == "HDCMiner" and not reference:  # ties of (i, j) and (j, i)
            d = LpDistance()(x)
            for k in (0, 2):
                expected = d[theirs[k], theirs[k + 1]].sort().values
                torch.testing.assert_close(d[ours[k], ours[k + 1]].sort().values, expected)
            return
        assert len(theirs[0]) > 0
        assert plain.listed(ours) == plain.listed(theirs)

    def test_with_a_similarity(self) -> None:
        theirs = pml.TripletMarginMiner(distance=pml_distances.CosineSimilarity())(X, Y)
        assert plain.listed(miners.TripletMarginMiner(distance=CosineSimilarity())(X, Y)) == plain.listed(
            theirs
        )
