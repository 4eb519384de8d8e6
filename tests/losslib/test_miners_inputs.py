"""Miners on any input, their options and refusals, and what a loss makes of the tuples."""

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch

from losslib import catalog, miners
from losslib.distances import DotProductSimilarity
from losslib.errors import ParameterError, ShapeError
from losslib.losses import ContrastiveLoss, MultipleLosses, TripletMarginLoss
from tests.losslib import plain_miners as plain
from tests.losslib.mining import EUCLIDEAN_ONLY, NAMES, RY, R, X, Y, batch, check_relations


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


def test_a_share_of_pairs_is_not_rounded_up_for_its_last_digit() -> None:
    x, y = torch.randn(25, 2, generator=torch.Generator().manual_seed(0)), torch.arange(25) % 5
    mined = miners.HDCMiner(filter_percentage=0.07)(x, y)  # in floating point 0.07 * 100 is above 7
    assert (len(mined[0]), len(mined[2])) == (7, 35)
