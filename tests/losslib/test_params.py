"""Declared parameters: what is accepted, what is refused, and what the message says."""

import copy
import inspect
import math
import pickle
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from losslib.distances import LpDistance
from losslib.errors import ParameterError
from losslib.losses import (
    ContrastiveLoss,
    HistogramLoss,
    MarginLoss,
    NTXentLoss,
    ThresholdConsistentMarginLoss,
    TripletMarginLoss,
)
from losslib.params import (
    Boolean,
    Choice,
    Domain,
    Either,
    Integer,
    Interval,
    Optional,
    Param,
    boolean,
    declared,
    finite,
    non_negative,
    positive,
)
from losslib.reducers import MeanReducer

DOMAINS: list[Domain] = [
    finite,
    positive,
    non_negative,
    boolean,
    Interval(0.0, 1.0),
    Interval(-2.0, 3.0, closed="left"),
    Interval(0.0, 1.0, closed="right"),
    Interval(-math.inf, 5.0),
    Integer(1),
    Integer(2, 4),
    Integer(None, 0),
    Choice("cosine", "dot"),
    Either(Integer(1), Choice("all")),
    Optional(positive),
]


class Thing:
    scale = Param(2.0, valid=positive, explore=(1.0, 4.0), symbol="s", meaning="size of it", larger="bigger")
    mode = Param("all", valid=Either(Integer(1), Choice("all")))
    limit = Param(None, valid=Optional(positive), title="Upper limit")
    kind = Param(3, valid=Integer(1), fixed=True)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: f"{type(d).__name__}-{d.describe()}")
class TestDomains:
    def test_examples_lie_where_they_claim(self, domain: Domain) -> None:
        inside, outside = domain.examples_in(), domain.examples_out()
        assert len(inside) >= 2
        assert len(outside) >= 2
        assert [v for v in inside if not domain.contains(v)] == []
        assert [v for v in outside if domain.contains(v)] == []

    def test_text_goes_there_and_back(self, domain: Domain) -> None:
        option = Param(domain.examples_in()[0], valid=domain, name="option")
        for value in domain.examples_in():
            assert option.parse(option.format(value), "Owner") == value

    def test_not_a_number_and_a_list_are_refused(self, domain: Domain) -> None:
        option = Param(domain.examples_in()[0], valid=domain, name="option")
        for value in (math.nan, [1.0]):
            with pytest.raises(ParameterError, match="Owner: option must be"):
                option.check(value, "Owner")


def test_the_ends_of_intervals() -> None:
    assert [Interval(0, 1, closed=c).contains(0) for c in ("both", "left", "right", "neither")] == [
        True,
        True,
        False,
        False,
    ]
    assert [Interval(0, 1, closed=c).contains(1) for c in ("both", "left", "right", "neither")] == [
        True,
        False,
        True,
        False,
    ]
    assert not finite.contains(math.inf)
    assert not finite.contains(10**400)


def test_a_boolean_is_not_a_number_nor_the_other_way_round() -> None:
    assert not finite.contains(True)
    assert not Integer(0).contains(False)
    assert not Boolean().contains(1)
    assert not Choice(1, 2).contains(True)


def test_words_for_domains() -> None:
    assert positive.describe() == "a number > 0"
    assert non_negative.describe() == "a number >= 0"
    assert Interval(0, 1, closed="left").describe() == "a number >= 0 and < 1"
    assert Integer(2, 4).describe() == "a whole number from 2 to 4"
    assert Either(Integer(1), Choice("all")).describe() == "a whole number >= 1 or 'all'"
    assert Optional(positive).describe() == "a number > 0 or None"


def test_setting_checks_and_converts() -> None:
    thing = Thing()
    thing.scale = 3
    assert isinstance(thing.scale, float)
    with pytest.raises(ParameterError, match=r"^Thing: scale must be a number > 0, got -1$"):
        thing.scale = -1
    assert thing.scale == 3.0


def test_a_fixed_option_is_settled_once() -> None:
    thing = Thing()
    thing.kind = 4
    thing.kind = 4
    with pytest.raises(ParameterError, match="kind is fixed at construction, got 5"):
        thing.kind = 5


def test_a_default_outside_its_domain_is_a_mistake() -> None:
    with pytest.raises(ParameterError):
        Param(0.0, valid=positive)


def test_declared_follows_inheritance() -> None:
    class Narrower(Thing):
        extra = Param(True, valid=boolean)
        limit = 7  # withdrawn

    assert list(declared(Thing)) == ["scale", "mode", "limit", "kind"]
    assert list(declared(Narrower)) == ["scale", "mode", "kind", "extra"]
    assert Thing.limit.title == "Upper limit"
    assert declared(Narrower)["extra"].title == "Extra"


def test_options_survive_copies() -> None:
    thing = Thing()
    thing.scale, thing.mode = 5.0, 7
    for other in (copy.deepcopy(thing), pickle.loads(pickle.dumps(thing))):
        assert (other.scale, other.mode) == (5.0, 7)


class TestOptionsOfLosses:
    def test_positional_and_keyword(self) -> None:
        loss = ContrastiveLoss(0.25, neg_margin=0.75)
        assert (loss.pos_margin, loss.neg_margin) == (0.25, 0.75)
        with pytest.raises(TypeError, match="pos_margin was given twice"):
            ContrastiveLoss(0.1, pos_margin=0.2)
        with pytest.raises(TypeError, match="at most 1 positional options, got 2"):
            NTXentLoss(0.1, 0.2)

    def test_unknown_options_name_the_near_miss(self) -> None:
        with pytest.raises(
            TypeError, match="NTXentLoss: has no option 'temprature'; did you mean temperature"
        ):
            NTXentLoss(temprature=0.1)
        with pytest.raises(TypeError, match="its options are margin, swap"):
            TripletMarginLoss(gamma=1)

    @pytest.mark.parametrize("value", [0, -0.1, math.nan, math.inf, "0.1", None, True])
    def test_a_temperature_must_be_positive(self, value: object) -> None:
        with pytest.raises(ParameterError, match="NTXentLoss: temperature must be a number > 0, got"):
            NTXentLoss(temperature=value)
        loss = NTXentLoss()
        with pytest.raises(ParameterError):
            loss.temperature = value
        assert loss.temperature == 0.07

    def test_parts_are_checked_when_made_and_when_set(self) -> None:
        with pytest.raises(TypeError, match="ContrastiveLoss: distance must be a Distance, got 'cosine'"):
            ContrastiveLoss(distance="cosine")
        loss = ContrastiveLoss()
        with pytest.raises(TypeError, match="reducer must be a Reducer"):
            loss.reducer = "mean"
        with pytest.raises(ParameterError, match="embedding_reg_weight must be a finite number"):
            loss.embedding_reg_weight = math.nan

    @pytest.mark.parametrize(
        ("make", "name"),
        [
            (ThresholdConsistentMarginLoss, "reducer"),
            (HistogramLoss, "reducer"),
            (ContrastiveLoss, "weight_regularizer"),
            (ContrastiveLoss, "weight_reg_weight"),
        ],
    )
    def test_a_part_that_a_loss_does_not_have_is_refused_when_set(self, make: Any, name: str) -> None:
        loss = make()
        with pytest.raises(TypeError, match=f"{make.__name__}: has no option '{name}'"):
            make(**{name: MeanReducer()})
        with pytest.raises(TypeError, match=f"{make.__name__}: has no option '{name}'"):
            setattr(loss, name, MeanReducer())

    def test_a_learned_tensor_is_no_value_of_an_option(self) -> None:
        given = nn.Parameter(torch.tensor(0.1))
        loss, distance = NTXentLoss(), LpDistance()
        words = "temperature must be a number > 0, got Parameter containing: tensor"
        with pytest.raises(ParameterError, match=f"NTXentLoss: {words}") as caught:
            loss.temperature = given
        assert "\n" not in str(caught.value)
        with pytest.raises(ParameterError, match=words):
            NTXentLoss(temperature=given)
        assert loss.temperature == 0.07
        assert list(loss.parameters()) == []
        with pytest.raises(ParameterError, match="LpDistance: p must be"):
            distance.p = given
        learned = MarginLoss(learn_beta=True)
        learned.beta = nn.Parameter(torch.tensor([0.7]))  # this one is a tensor of the loss
        assert [p.item() for p in learned.parameters()] == pytest.approx([0.7])

    def test_triplets_per_anchor(self) -> None:
        assert MarginLoss(triplets_per_anchor=3).triplets_per_anchor == 3
        for value in (0, 2.5, "some"):
            with pytest.raises(ParameterError, match="a whole number >= 1 or 'all'"):
                MarginLoss(triplets_per_anchor=value)

    def test_the_signature_shows_the_options(self) -> None:
        text = str(inspect.signature(ContrastiveLoss))
        assert text.startswith(
            "(pos_margin=0.0, neg_margin=1.0, squared=False, *, distance=None, reducer=None"
        )

    def test_printing_names_the_options(self) -> None:
        assert "pos_margin=0.0, neg_margin=1.0" in repr(ContrastiveLoss())
        assert "beta=tensor([1.2" in repr(MarginLoss())


def test_the_light_modules_load_no_torch() -> None:
    code = (
        "import sys, losslib, losslib.params, losslib.errors, losslib.types, losslib.declared\n"
        "print(sorted({'torch', 'numpy', 'streamlit', 'plotly', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_losses_load_torch_alone() -> None:
    code = (
        "import sys, losslib.catalog\nlosslib.catalog.losses()\n"
        "print(sorted({'streamlit', 'plotly', 'sklearn', 'pandas', 'lab', 'datasets'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
