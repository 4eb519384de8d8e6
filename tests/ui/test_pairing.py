"""The pairing controls of the Train page: what applies is shown, and what is chosen is what trains."""

import time

import pytest

from tests.ui.opening import opened_at, runs_closed, said
from ui.server import scheduler


@pytest.fixture
def opened():
    with runs_closed():
        yield lambda **query: opened_at("train", {"batch": "32", "per_class": "4", **query})


def keys(at):
    kinds = ("slider", "select_slider", "selectbox", "number_input", "toggle", "text_input")
    return {widget.key for kind in kinds for widget in getattr(at, kind)}


def run_of(at):
    assert not at.exception, at.exception[0].value
    run = scheduler().get(at.session_state["run.token"])
    deadline = time.monotonic() + 60
    while run.state != "ready":
        assert time.monotonic() < deadline, f"{run}: {run.reason}"
        time.sleep(0.01)
    return run


def test_only_what_applies_is_shown_and_a_sentence_says_what_positives_are(opened):
    at = opened(data="swiss_roll", **{"swiss_roll.points": "200"})
    assert at.get_by_key("pairing").options == ["label", "continuous", "views", "semi"]
    assert not {"delta", "label_fraction"} & keys(at)
    assert "per_class" in keys(at)
    assert "Two samples with the same label are a positive pair" in said(at)
    at.get_by_key("pairing").set_value("continuous").run()
    assert "delta" in keys(at)
    assert not {"label_fraction", "per_class"} & keys(at)
    assert "position along the roll (0 to 1) differs by at most 0.05" in said(at)
    assert (run_of(at).config.pairing, run_of(at).config.delta) == ("continuous", 0.05)
    at.get_by_key("delta").set_value(0.2).run()
    assert "differs by at most 0.2 " in said(at)
    assert run_of(at).config.delta == 0.2
    at.get_by_key("data").set_value("moons").run()
    assert at.get_by_key("pairing").options == ["label", "views", "semi"]
    assert run_of(at).config.pairing == "label"


def test_two_views_bring_the_losses_of_two_views_and_describe_the_augmentation(opened):
    at = opened(data="digits", pairing="views", loss="VICRegLoss")
    assert not at.warning
    config = run_of(at).config
    assert (config.pairing, config.loss) == ("views", "VICRegLoss")
    offered = at.get_by_key("loss").options
    assert {"BarlowTwinsLoss", "SigLIPLoss", "NTXentLoss"} <= set(offered)
    assert not {"ArcFaceLoss", "ProxyNCALoss"} & set(offered)
    assert "free" not in at.get_by_key("encoder").options
    assert "turned by up to 15 degrees" in said(at)
    assert "takes no pairs or triplets, because row i of both views is one sample" in said(at)
    assert "miner" not in keys(at)
    at.get_by_key("pairing").set_value("semi").run()
    assert "label_fraction" in keys(at)
    assert "10 % of the training samples have a known label" in said(at)
    assert at.get_by_key("loss").value == "ContrastiveLoss"
    assert (run_of(at).config.pairing, run_of(at).config.label_fraction) == ("semi", 0.1)


def test_a_miner_and_its_options_come_from_the_link_and_turn_by_hand(opened):
    query = {"data": "blobs", "blobs.points": "200", "loss": "TripletMarginLoss"}
    at = opened(**query, miner="TripletMarginMiner", **{"TripletMarginMiner.type_of_triplets": "semihard"})
    assert not at.warning
    config = run_of(at).config
    assert (config.miner, dict(config.miner_options)) == (
        "TripletMarginMiner",
        {"type_of_triplets": "semihard"},
    )
    at.get_by_key("TripletMarginMiner.margin").set_value(0.5).run()
    assert dict(run_of(at).config.miner_options) == {"type_of_triplets": "semihard", "margin": 0.5}
    at.get_by_key("miner").set_value("BatchHardMiner").run()
    assert (run_of(at).config.miner, run_of(at).config.miner_options) == ("BatchHardMiner", ())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"data": "moons", "pairing": "continuous"}, "needs a continuous label, and moons has none"),
        ({"data": "moons", "pairing": "views", "encoder": "free"}, "Free points have no input to augment"),
        ({"data": "moons", "pairing": "views", "loss": "ArcFaceLoss"}, "ArcFaceLoss needs the class of each"),
        ({"data": "moons", "loss": "GE2ELoss", "miner": "BatchHardMiner"}, "takes no pairs or triplets"),
        ({"data": "moons", "miner": "BatchHardMine"}, "did you mean BatchHardMiner"),
        ({"data": "moons", "pairing": "semi", "label_fraction": "1.5"}, "label_fraction must be a number"),
    ],
)
def test_what_does_not_go_together_in_a_link_is_one_sentence(query, words, opened):
    at = opened(**query)
    [warning] = [warning.value for warning in at.warning]
    assert words in warning
    assert run_of(at).config.data == "moons"
