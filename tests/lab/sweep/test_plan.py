"""Plans: which runs a sweep has, and one sentence for each thing that can be wrong with one."""

import json

import pytest

from lab.config import RunConfig
from lab.sweep.plan import Plan, read_plan
from lab.sweep.values import read_values, suggested, variable_options
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Integer, Param, boolean, finite, positive

BASE = {"data": "blobs", "steps": "10"}


def plan(**plain):
    return read_plan(json.dumps({"base": BASE, **plain}))


def test_cells_are_all_combinations_with_seeds_innermost():
    made = plan(vary={"ContrastiveLoss.neg_margin": [0.5, 1], "lr": [0.001, 0.01]}, seeds=[3, 4])
    told = [(c.config.loss_values["neg_margin"], c.config.lr, c.config.seed) for c in made.cells]
    assert told == [(m, r, s) for m in (0.5, 1.0) for r in (0.001, 0.01) for s in (3, 4)]
    assert made.cells[0].label == "negative margin 0.5, learning rate 0.001"
    assert made.steps == 80


def test_an_option_is_varied_for_its_own_loss_alone():
    vary = {
        "loss": ["ContrastiveLoss", "NTXentLoss", "TripletMarginLoss"],
        "ContrastiveLoss.neg_margin": [0.5, 1.5],
        "NTXentLoss.temperature": [0.1, 0.2, 0.3],
    }
    told = [(c.config.loss, dict(c.config.loss_options)) for c in plan(vary=vary).cells]
    assert [loss for loss, _ in told] == ["ContrastiveLoss"] * 2 + ["NTXentLoss"] * 3 + ["TripletMarginLoss"]
    assert [options for _, options in told[:2]] == [{"neg_margin": 0.5}, {"neg_margin": 1.5}]
    assert told[-1] == ("TripletMarginLoss", {})
    assert plan(vary=vary).cells[0].label == "Contrastive, negative margin 0.5"


def test_a_base_may_be_a_run_config():
    config = RunConfig(data="blobs", loss="NTXentLoss", loss_options={"temperature": 0.3}, steps=7, dim=3)
    made = read_plan(json.dumps({"base": config.to_dict(), "vary": {"batch": [32, 64]}, "seeds": [0]}))
    assert [cell.config for cell in made.cells] == [config.replace(batch=32), config.replace(batch=64)]


def test_options_of_the_base_stay_with_their_loss():
    base = {**BASE, "NTXentLoss.temperature": 0.3, "ContrastiveLoss.neg_margin": 0.4, "blobs.points": 100}
    made = read_plan(json.dumps({"base": base, "vary": {"loss": ["ContrastiveLoss", "NTXentLoss"]}}))
    assert [dict(c.config.loss_options) for c in made.cells] == [{"neg_margin": 0.4}, {"temperature": 0.3}]
    assert all(cell.config.data_values["points"] == 100 for cell in made.cells)


def test_how_many_runs_there_are_at_most_is_known_without_making_them():
    vary = {
        "loss": ["ContrastiveLoss", "NTXentLoss"],
        "lr": ["0.1", "0.2"],
        "NTXentLoss.temperature": ["1", "2"],
    }
    plan = Plan.of(BASE, vary, (0, 1, 2))
    assert plan.most == len(plan.cells) == (2 + 2 * 2) * 3
    twice = Plan.of(BASE, {"lr": ["0.1", "1e-1"]})
    assert (twice.most, len(twice.cells)) == (2, 1)
    endless = Plan.of(BASE, {name: list(map(str, range(1, 10_001))) for name in ("lr", "batch", "dim")})
    assert endless.most == 10**12


def test_equal_runs_count_once():
    assert len(plan(vary={"ContrastiveLoss.neg_margin": [1, 1.0, "1"]}).cells) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "the config is not JSON"),
        ("[]", "must be a JSON object"),
        ('{"bass": {}}', "unknown entry 'bass'; entries: base, vary, seeds"),
        ('{"base": []}', "base must be an object of settings"),
        ('{"vary": {"lr": 0.1}}', "lr must have a list of values, got 0.1"),
        ('{"vary": {"lr": []}}', "lr has no values to vary"),
        ('{"seeds": []}', "seeds must name at least one seed"),
        ('{"seeds": [1, 1]}', "seeds must differ, got 1, 1"),
        ('{"seeds": [-1]}', "seeds must be a whole number from 0"),
        ('{"seeds": ["a"]}', "seeds must be a whole number from 0"),
        ('{"seeds": 3}', "seeds must be a list"),
        ('{"vary": {"seed": [1]}}', 'seed cannot be varied; give "seeds" a list instead'),
        ('{"vary": {"steps": [1, 2]}}', "steps cannot be varied; all runs of a sweep share it"),
        ('{"vary": {"NTXentLoss.temperature": [1]}}', "NTXentLoss.temperature is varied, but no run has"),
        ('{"vary": {"loss": ["TripletMargin"]}}', "no loss is called 'TripletMargin'; did you mean"),
        ('{"vary": {"ContrastiveLoss.neg_margin": ["wide"]}}', "neg_margin must be a finite number"),
        ('{"vary": {"ContrastiveLoss.margin": [1]}}', "has no option 'margin'"),
        ('{"vary": {"colour": ["red"]}}', "there is no setting 'colour'"),
        ('{"base": {"lr": -1}}', "lr must be a number > 0, got -1"),
        ('{"base": {"version": 99}}', "run config: version"),
    ],
)
def test_what_is_wrong_is_one_sentence(text, words):
    with pytest.raises(ParameterError) as caught:
        read_plan(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_plans_of_equal_content_are_equal():
    vary = {"ContrastiveLoss.neg_margin": ["1", "2"]}
    assert Plan.of(BASE, vary, (0,)) == Plan.of(dict(BASE), dict(vary), [0])
    assert hash(Plan.of(BASE, vary)) == hash(Plan.of(BASE, vary))


@pytest.mark.parametrize(
    ("param", "values"),
    [
        (Param(0.5, valid=finite, explore=(0.0, 2.0), name="m"), ("0", "0.5", "2")),
        (Param(0.1, valid=positive, explore=(0.01, 1.0), name="t"), ("0.01", "0.1", "1")),
        (Param(3.0, valid=finite, name="free"), ("1.5", "3", "6")),
        (Param(4, valid=Integer(1, 6), explore=(1, 6), name="n"), ("1", "4", "6")),
        (Param(False, valid=boolean, name="b"), ("false", "true")),
    ],
)
def test_suggestions_span_the_range_and_hold_the_default(param, values):
    assert suggested(param) == values


@pytest.mark.parametrize("name", sorted(catalog.losses()))
def test_suggestions_of_every_loss_are_accepted(name):
    for option, param in variable_options(name).items():
        texts = suggested(param)
        assert len(texts) == len(set(texts)) >= 1
        assert read_values(" , ".join(texts), param, name) == texts, option


@pytest.mark.parametrize(
    ("text", "words"), [("", "give at least one value for m"), ("0.5, x", "m must be"), (" , ", "at least")]
)
def test_values_that_cannot_be_read_are_said(text, words):
    with pytest.raises(ParameterError, match=words):
        read_values(text, Param(0.5, valid=finite, name="m"), "Loss")
