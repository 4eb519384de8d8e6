"""Miners against loops from their definitions, against pytorch-metric-learning, and at their limits."""

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch
from pytorch_metric_learning import distances as pml_distances
from pytorch_metric_learning import miners as pml
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from losslib import catalog, miners
from losslib.distances import CosineSimilarity, DotProductSimilarity, LpDistance
from losslib.errors import ParameterError, ShapeError
from losslib.losses import ContrastiveLoss, MultipleLosses, TripletMarginLoss
from losslib.types import PairIndices, TripletIndices
from tests.losslib import plain_miners as plain

NAMES = list(catalog.miners())
TRIPLETS = {"AngularMiner", "BatchHardMiner", "DistanceWeightedMiner", "TripletMarginMiner"}
EUCLIDEAN_ONLY = {"AngularMiner", "DistanceWeightedMiner"}
COMBINATIONS = [
    (p, n)
    for p in ("easy", "semihard", "hard", "all")
    for n in ("easy", "semihard", "hard", "all")
    if (p, n) not in (("semihard", "semihard"), ("semihard", "all"), ("all", "semihard"))
]


def batch(seed: int, rows: int = 14, size: int = 3, classes: int = 4) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, size, generator=source, dtype=torch.float64)
    return x, torch.randint(0, classes, (rows,), generator=source)


X, Y = batch(1)
R, RY = batch(2, rows=11, classes=5)
SETS: list[tuple[Any, ...]] = [(X, Y), (X, Y, R, RY)]


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
        for seed in (5, 5, 6):
            torch.manual_seed(seed)
            results.append(plain.listed(miner(X, Y)))
        assert results[0] == results[1]

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

    def test_every_triplet_is_equally_likely_across_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("losslib.miners.blocks._BLOCK", 1)  # blocks of four positive pairs
        y = torch.tensor([0] * 6 + [1] * 2)
        x = torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
        torch.manual_seed(0)
        miner = miners.TripletMarginMiner(margin=10.0, tuples_per_anchor=3)
        times, drawn = 2000, torch.zeros(8, 8)
        for _ in range(times):
            a, p, n = miner(x, y)
            first = a == 0
            assert int(first.sum()) == 3
            drawn.index_put_((p[first], n[first]), torch.ones(3), accumulate=True)
        share = drawn[1:6, 6:] / times  # 5 positives and 2 negatives: 10 triplets, 3 of them kept
        assert bool((share - 0.3).abs().max() < 4.5 * (0.3 * 0.7 / times) ** 0.5)


class Largest(TorchDispatchMode):
    """The most entries of any tensor that is made."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for made in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(made, Tensor):
                self.numel = max(self.numel, made.numel())
        return result


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


def check_relations(name: str, mined: Any, y: Tensor, ry: Tensor | None) -> None:
    same_set, ry = ry is None, y if ry is None else ry
    assert isinstance(mined, TripletIndices if name in TRIPLETS else PairIndices)
    a, p, b, n = mined if len(mined) == 4 else (mined[0], mined[1], mined[0], mined[2])
    assert bool((y[a] == ry[p]).all())
    assert bool((y[b] != ry[n]).all())
    assert not same_set or not bool((a == p).any())
    assert all(index.dtype == torch.int64 for index in mined)


def hard_inputs() -> dict[str, tuple[Any, ...]]:
    x, y = batch(7, rows=8, size=4, classes=2)
    x = x.float()
    wide = torch.nn.functional.normalize(torch.randn(32, 512, generator=torch.Generator().manual_seed(9)) + 3)
    nan = x.clone()
    nan[2] = torch.nan
    return {
        "collapsed": (torch.ones(8, 4), y),
        "nearly collapsed": (torch.ones(8, 4) + 1e-7 * x, y),
        "zero rows": (torch.zeros(8, 4), y),
        "512 dimensions": (wide, torch.arange(32) % 8),
        "huge": (x * 1e25, y),
        "infinite": (torch.where(x > 1, torch.inf, x), y),
        "not a number": (nan, y),
        "half": (x.half(), y),
        "bfloat16": (x.bfloat16(), y),
        "one class": (x, y * 0),
        "all classes": (x, torch.arange(8)),
        "one row": (x[:1], y[:1]),
        "empty": (x[:0], y[:0]),
        "empty reference": (x, y, x[:0], y[:0]),
        "reference": (x, y, x[:5], y[:5] + 1),
        "float labels": (x, y.float() / 3),
        "boolean labels": (x, y.bool()),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", list(hard_inputs()))
@pytest.mark.parametrize("dot", [False, True], ids=["default", "dot"])
def test_relations_hold_for_any_input(name: str, case: str, dot: bool) -> None:
    if dot and name in EUCLIDEAN_ONLY:
        with pytest.raises(TypeError, match="distance must be LpDistance"):
            catalog.miners()[name](distance=DotProductSimilarity())
        return
    given = hard_inputs()[case]
    miner = catalog.miners()[name](**({"distance": DotProductSimilarity()} if dot else {}))
    mined = miner(*given)
    check_relations(name, mined, given[1], given[3] if len(given) == 4 else None)
    if case in ("one class", "all classes", "one row", "empty", "empty reference") and len(mined) == 3:
        assert len(mined[0]) == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(name: str, dtype: torch.dtype) -> None:
    x = X.float()
    with torch.autocast("cpu", dtype=dtype):
        embeddings = torch.nn.functional.linear(x, torch.eye(3))
        check_relations(name, catalog.miners()[name]()(embeddings, Y), Y, None)
        # a reference kept in another precision, as a memory keeps it
        check_relations(name, catalog.miners()[name]()(embeddings, Y, R.float(), RY), Y, RY)


@pytest.mark.parametrize("name", NAMES)
def test_own_copies_are_no_candidates(name: str) -> None:
    """A reference that holds the batch itself: with its places given, the tuples are those of the batch."""
    if name in ("DistanceWeightedMiner", "UniformHistogramMiner"):
        mined = catalog.miners()[name]()(X, Y, X, Y, own=torch.arange(len(X)))
        check_relations(name, mined, Y, None)
        return
    miner = catalog.miners()[name]()
    mined = miner(X, Y, X, Y, own=torch.arange(len(X)))
    assert plain.listed(mined) == plain.listed(miner(X, Y))
    assert len(mined[0]) > 0


class TestDeclarations:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_miner_has_a_cap_and_a_summary(self, name: str) -> None:
        cls = catalog.miners()[name]
        assert list(cls.params)[-1] == "tuples_per_anchor"
        assert cls.summary.endswith(".")
        assert cls.__doc__
        assert getattr(miners, name) is cls
        for param in cls.params.values():
            assert param.meaning

    @pytest.mark.parametrize("name", NAMES)
    def test_options_are_checked(self, name: str) -> None:
        cls = catalog.miners()[name]
        for option, param in cls.params.items():
            for value in param.valid.examples_out():
                with pytest.raises(ParameterError, match=rf"{name}: {option} must be"):
                    cls(**{option: value})
            made = cls()
            with pytest.raises(ParameterError, match=option):
                setattr(made, option, float("nan"))
        with pytest.raises(TypeError, match="has no option"):
            cls(no_such_option=1)
        with pytest.raises(TypeError, match="distance must be"):
            cls(distance="LpDistance")

    def test_strategies_that_wait_for_each_other(self) -> None:
        for pos, neg in (("semihard", "semihard"), ("semihard", "all"), ("all", "semihard")):
            with pytest.raises(ParameterError, match="semihard needs easy or hard on the other side"):
                miners.BatchEasyHardMiner(pos, neg)
        miner = miners.BatchEasyHardMiner()
        miner.pos_strategy = "all"
        with pytest.raises(ParameterError, match="semihard needs"):
            miner(X, Y)
        assert "pos_strategy" not in miners.BatchHardMiner.params

    def test_ranges_round_trip_as_text(self) -> None:
        param = miners.BatchEasyHardMiner.params["allowed_pos_range"]
        for value in ((0.1, 1.0), (-float("inf"), 1e-7), None):
            assert param.parse(param.format(value), "x") == value

    def test_bad_inputs(self) -> None:
        miner = miners.BatchHardMiner()
        with pytest.raises(ShapeError, match=r"BatchHardMiner: labels must .* got None"):
            miner(X, None)
        with pytest.raises(ShapeError, match="one label a row"):
            miner(X, Y[:3])
        with pytest.raises(ShapeError, match="ref_emb with labels needs ref_labels"):
            miner(X, Y, R)
        with pytest.raises(AttributeError, match="NoSuchMiner"):
            _ = miners.NoSuchMiner

    @pytest.mark.parametrize("name", NAMES)
    def test_copies(self, name: str) -> None:
        miner = catalog.miners()[name]()
        for made in (copy.deepcopy(miner), pickle.loads(pickle.dumps(miner))):
            torch.manual_seed(1)
            expected = plain.listed(miner(X, Y))
            torch.manual_seed(1)
            assert plain.listed(made(X, Y)) == expected


@pytest.mark.parametrize("name", NAMES)
def test_mined_tuples_feed_any_loss(name: str) -> None:
    x = X.clone().requires_grad_()
    torch.manual_seed(0)
    mined = catalog.miners()[name]()(x, Y)
    losses = {"contrastive": ContrastiveLoss(), "triplet": TripletMarginLoss()}
    expected = sum(loss(x, Y, mined) for loss in losses.values())
    torch.manual_seed(0)
    both = MultipleLosses(losses, miners={"contrastive": catalog.miners()[name]()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = both(x, Y)
    total.backward()
    torch.testing.assert_close(total, losses["contrastive"](x, Y, mined) + losses["triplet"](x, Y))
    assert bool(torch.isfinite(x.grad).all())
    assert bool(torch.isfinite(expected))
    torch.manual_seed(0)
    referred = both(X, Y, ref_emb=R, ref_labels=RY)
    torch.manual_seed(0)
    mined = catalog.miners()[name]()(X, Y, R, RY)
    by_hand = losses["contrastive"](X, Y, mined, R, RY) + losses["triplet"](X, Y, None, R, RY)
    torch.testing.assert_close(referred, by_hand)
