"""Configs: equality, the trip through JSON and links, and a sentence for everything that is wrong."""

import json
import math

import pytest

from lab.config import Event, RunConfig, folded, in_force, live_options, trainable_losses
from lab.links import qualified, read_settings
from lab.settings import encoders_for, settings
from losslib import catalog
from losslib.errors import ParameterError
from losslib.params import Param


def test_defaults_are_those_of_page_and_command_line() -> None:
    config = RunConfig()
    chosen = (config.data, config.encoder, config.dim, config.output, config.loss, config.steps, config.seed)
    assert chosen == ("mnist", "cnn", 2, "l2", "ContrastiveLoss", 300, 0)
    assert RunConfig.from_settings({}) == config
    assert all(getattr(config, n) == p.default for n, p in settings().items() if n != "encoder")
    assert config.to_settings() == {}


def test_the_encoder_follows_the_kind_of_data() -> None:
    assert RunConfig(data="moons").encoder == "mlp"
    assert RunConfig(data="digits").encoder == "cnn"
    assert RunConfig().replace(data="moons").encoder == "mlp"
    assert encoders_for("points") == ("free", "linear", "mlp")


def test_equal_configs_are_equal_however_they_were_spelt() -> None:
    plain = RunConfig(loss_options={"neg_margin": 1, "pos_margin": 0.25})
    assert plain == RunConfig(loss_options=(("pos_margin", 0.25), ("neg_margin", 1.0)))
    assert hash(plain) == hash(RunConfig(loss_options={"pos_margin": 0.25}))
    assert plain.loss_options == (("pos_margin", 0.25),)  # what equals the default is not kept
    assert plain != RunConfig()


def full_config() -> RunConfig:
    return RunConfig(
        data="blobs",
        data_options={"classes": 3, "spread": 0.123456789},
        encoder="free",
        dim=8,
        output="none",
        loss="NTXentLoss",
        loss_options={"temperature": 0.1 + 0.2},
        batch=64,
        per_class=0,
        optimizer="sgd",
        lr=1e-4,
        steps=77,
        seed=5,
        device="cpu",
        events=(Event(9, "lr", 1 / 3), Event(4, "temperature", 0.5)),
    )


def test_round_trips_are_exact() -> None:
    config = full_config()
    assert RunConfig.from_json(config.to_json()) == config
    for full in (False, True):
        assert RunConfig.from_settings(config.to_settings(full)) == config
    assert [event.step for event in config.events] == [4, 9]  # in order of step
    assert json.loads(config.to_json())["version"] == 2


def test_links_keep_what_is_good_and_say_what_is_not() -> None:
    config, refusals = read_settings(
        {
            "data": "blobs",
            "dim": "1",
            "lr": "fast",
            "loss": "ContrastivLoss",
            "blobs.classes": "9",
            "blobs.spread": "-1",
            "ContrastiveLoss.neg_margin": "nan",
            "moons.noise": "0.3",
            "colour": "red",
            "events": "3:neg_margin=0.5,x",
        }
    )
    assert config == RunConfig(
        data="blobs", data_options={"classes": 9}, events=(Event(3, "neg_margin", 0.5),)
    )
    text = " | ".join(refusals)
    for words in (
        "dim must be a whole number from 2 to 512",
        "lr must be a number",
        "did you mean ContrastiveLoss",
        "spread must be a number > 0",
        "neg_margin must be a finite number",
        "no setting 'colour'",
        "got 'x'",
    ):
        assert words in text
    assert len(refusals) == 7
    assert all("\n" not in sentence for sentence in refusals)


def test_links_whose_values_do_not_go_together_fall_back() -> None:
    config, refusals = read_settings({"data": "moons", "encoder": "cnn", "dim": "8"})
    assert (config.encoder, config.dim) == ("mlp", 8)
    assert refusals == ("run: the CNN needs images, and moons has none; choose free or linear or mlp",)
    config, refusals = read_settings({"batch": "4", "per_class": "8"})
    assert config.per_class <= config.batch
    assert "per_class must be at most the batch size 4" in refusals[0]


def test_a_link_to_a_loss_that_needs_two_views_loses_the_loss_alone() -> None:
    config, refusals = read_settings(
        {
            "data": "blobs",
            "loss": "VICRegLoss",
            "blobs.classes": "9",
            "VICRegLoss.eps": "0.5",
            "batch": "64",
            "per_class": "4",
            "encoder": "linear",
        }
    )
    assert config == RunConfig(
        data="blobs", data_options={"classes": 9}, batch=64, per_class=4, encoder="linear"
    )
    assert len(refusals) == 1
    assert "VICRegLoss needs two views of each sample" in refusals[0]
    config, refusals = read_settings({"data": "moons", "loss": "VICRegLoss", "encoder": "cnn"})
    assert (config.data, config.encoder, len(refusals)) == ("moons", "mlp", 2)


def test_losses_are_trainable_exactly_if_a_run_takes_them() -> None:
    offered = trainable_losses()
    assert {"ContrastiveLoss", "TripletMarginLoss", "ArcFaceLoss"} <= set(offered)
    assert not {"VICRegLoss", "BarlowTwinsLoss", "AlignmentUniformityLoss"} & set(offered)
    for name in catalog.losses():
        if name in offered:
            assert RunConfig(loss=name).loss == name
        else:
            with pytest.raises(ParameterError, match=f"{name} needs .* choose another loss"):
                RunConfig(loss=name)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dim": 1}, "dim must be a whole number from 2 to 512, got 1"),
        ({"dim": 2.0}, "dim must be a whole number"),
        ({"dim": True}, "dim must be a whole number"),
        ({"lr": 0}, "lr must be a number > 0"),
        ({"lr": math.nan}, "lr must be a number"),
        ({"loss": "TripletMarginLos"}, "no loss is called 'TripletMarginLos'"),
        ({"data": "mnits"}, "did you mean mnist"),
        ({"encoder": "vit"}, "encoder must be"),
        (
            {"pairing": "triplets"},
            "pairing must be 'label' or 'continuous' or 'views' or 'semi', got 'triplets'",
        ),
        ({"batch": 16, "per_class": 17}, "per_class must be at most the batch size 16"),
        ({"loss_options": {"margin": 1.0}}, "ContrastiveLoss: has no option 'margin'; options: pos_margin"),
        ({"loss_options": {"neg_margin": "1"}}, "neg_margin must be a finite number, got '1'"),
        ({"data_options": {"classes": 3}}, "mnist: has no option 'classes'; options: none"),
        ({"events": ((0, "lr", 0.1),)}, "step must be a whole number >= 1"),
        ({"events": ((3, "squared", True),)}, "'squared' cannot change while it trains"),
        ({"events": ((3, "lr", -1.0),)}, "lr must be a number > 0"),
    ],
)
def test_bad_values_are_one_sentence(fields: dict, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        RunConfig(**fields)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "expected a JSON object"),
        ('{"version": 3}', "version 1 or 2 is read here, got 3"),
        ('{"version": 1, "colour": 3}', "unknown entry 'colour'"),
        ('{"version": 1, "events": [[1]]}', "events must be lists"),
        ('{"version": 1, "dim": 1}', "dim must be"),
    ],
)
def test_bad_json_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        RunConfig.from_json(text)


def test_every_declared_value_survives_a_link() -> None:
    def values(param: Param) -> tuple:
        return tuple(param.valid.examples_in())

    for name, param in settings().items():
        for value in values(param):
            if name in ("encoder", "loss", "batch", "per_class", "pairing"):
                continue
            config = RunConfig(**{name: value}) if name != "data" else RunConfig(data=value)
            assert RunConfig.from_settings(config.to_settings()) == config


def test_strict_settings_refuse_an_option_of_another_loss() -> None:
    with pytest.raises(ParameterError, match="option of NTXentLoss, but the loss is ContrastiveLoss"):
        RunConfig.from_settings({"NTXentLoss.temperature": "0.1"})
    assert RunConfig.from_settings({"NTXentLoss.temperature": "0.1"}, strict=False) == RunConfig()


def test_bare_names_are_qualified() -> None:
    assert qualified("neg_margin", "mnist", "ContrastiveLoss") == "ContrastiveLoss.neg_margin"
    assert qualified("classes", "blobs", "ContrastiveLoss") == "blobs.classes"
    assert qualified("dim", "blobs", "ContrastiveLoss") == "dim"
    with pytest.raises(ParameterError, match="neither ContrastiveLoss nor mnist has an option 'foo'"):
        qualified("foo", "mnist", "ContrastiveLoss")


def test_events_fold_into_the_options_they_led_to() -> None:
    config = RunConfig(
        events=(Event(3, "lr", 0.5), Event(5, "neg_margin", 0.4), Event(9, "neg_margin", 0.6)), lr=0.1
    )
    assert in_force(config) == {"lr": 0.5, "pos_margin": 0.0, "neg_margin": 0.6, "squared": False}
    assert folded(config) == RunConfig(lr=0.5, loss_options={"neg_margin": 0.6})
    assert config.with_event(Event(5, "neg_margin", 0.7)).events[1].value == 0.7
    assert len(config.with_event(Event(5, "neg_margin", 0.7)).events) == 3


def test_only_numbers_of_a_loss_may_change_while_it_trains() -> None:
    assert set(live_options("ContrastiveLoss")) == {"pos_margin", "neg_margin"}


def test_a_new_loss_drops_the_old_ones_options_and_events() -> None:
    config = RunConfig(loss_options={"neg_margin": 0.5}, events=(Event(3, "neg_margin", 0.4),), lr=0.1)
    assert config.replace(loss="NTXentLoss") == RunConfig(loss="NTXentLoss", lr=0.1)


def test_a_range_with_an_open_end_survives_json_which_has_no_infinity() -> None:
    address = {"miner": "BatchEasyHardMiner", "BatchEasyHardMiner.allowed_neg_range": "0.5:inf"}
    config, refusals = read_settings(address)
    assert not refusals
    text = config.to_json()
    assert '"allowed_neg_range": [0.5, "inf"]' in text
    assert RunConfig.from_json(text) == config
    assert dict(config.miner_options)["allowed_neg_range"] == (0.5, math.inf)


def test_an_infinite_option_survives_json() -> None:
    address = {
        "loss": "ManifoldLoss",
        "ManifoldLoss.lambda_c": "inf",
        "events": "3:ManifoldLoss.lambda_c=inf",
    }
    config, _ = read_settings(address)
    text = config.to_json()
    assert '"lambda_c": "inf"' in text
    assert RunConfig.from_json(text) == config
    assert dict(config.loss_options)["lambda_c"] == math.inf
    named = RunConfig(data="file", data_options={"name": "inf"})
    assert RunConfig.from_json(named.to_json()) == named
