"""Pairing and miners as settings: links, JSON, run files, and what does not go together."""

import pytest

from lab.config import RunConfig
from lab.limits import estimated_bytes, written_triplets
from lab.links import qualified, read_settings
from lab.recording import Recording
from lab.run import Run

ROLL = {"data": "swiss_roll", "data_options": {"points": 400}, "batch": 24, "steps": 3}


def full_config() -> RunConfig:
    return RunConfig(
        data="swiss_roll",
        pairing="continuous",
        delta=1 / 3,
        label_fraction=0.7,
        loss="MarginLoss",
        miner="BatchEasyHardMiner",
        miner_options={"pos_strategy": "hard", "allowed_pos_range": (0.1, 0.5), "tuples_per_anchor": 3},
    )


def test_round_trips_through_links_and_json_are_exact() -> None:
    config = full_config()
    for full in (False, True):
        assert RunConfig.from_settings(config.to_settings(full)) == config
    assert RunConfig.from_json(config.to_json()) == config
    texts = config.to_settings()
    assert {"pairing", "delta", "label_fraction", "miner", "BatchEasyHardMiner.pos_strategy"} <= set(texts)
    assert config.replace(miner="BatchHardMiner").miner_options == ()
    assert config.replace(data="moons").pairing == "label"
    assert qualified("pos_strategy", "moons", "MarginLoss", "BatchEasyHardMiner") == (
        "BatchEasyHardMiner.pos_strategy"
    )


def test_a_config_of_version_1_is_read_as_pairing_by_label() -> None:
    plain = RunConfig(data="moons", seed=3).to_dict()
    for new in ("delta", "label_fraction", "miner", "miner_options"):
        del plain[new]
    assert RunConfig.from_dict({**plain, "version": 1}) == RunConfig(data="moons", seed=3)


@pytest.mark.parametrize(
    ("texts", "words", "kept"),
    [
        (
            {"data": "moons", "pairing": "continuous"},
            "choose data=swiss_roll, or pairing",
            {"pairing": "label"},
        ),
        ({"pairing": "views", "encoder": "free"}, "choose linear or mlp or cnn", {"encoder": "cnn"}),
        ({"pairing": "semi", "loss": "ProxyNCALoss"}, "needs the class of each", {"loss": "ContrastiveLoss"}),
        ({"loss": "P2SGradLoss", "miner": "HDCMiner"}, "averages over all rows", {"loss": "P2SGradLoss"}),
        (
            {
                "miner": "BatchEasyHardMiner",
                "BatchEasyHardMiner.pos_strategy": "semihard",
                "BatchEasyHardMiner.neg_strategy": "semihard",
            },
            "semihard needs easy or hard on the other side",
            {"miner": "BatchEasyHardMiner"},
        ),
        (
            {"miner": "HDCMiner", "HDCMiner.colour": "1"},
            "HDCMiner: has no option 'colour'",
            {"miner": "HDCMiner"},
        ),
    ],
)
def test_what_does_not_go_together_falls_back_alone(texts: dict, words: str, kept: dict) -> None:
    config, refusals = read_settings({**texts, "seed": "5"})
    assert len(refusals) == 1
    assert words in refusals[0]
    assert config.seed == 5
    for name, value in kept.items():
        assert getattr(config, name) == value


def test_a_recording_keeps_which_pairs_are_positive(tmp_path) -> None:
    run = Run(RunConfig(**ROLL, pairing="continuous"))
    for _ in run:
        pass
    run.recording.save(tmp_path / "run.zip")
    assert [file.name for file in tmp_path.iterdir()] == ["run.zip"]
    again = Recording.load(tmp_path / "run.zip")
    assert again.equals(run.recording)
    assert again.chance == run.recording.chance


def test_the_memory_of_written_triplets_counts() -> None:
    plain = RunConfig(batch=512)
    assert written_triplets(plain) == 0
    assert estimated_bytes(RunConfig(batch=512, pairing="views")) > estimated_bytes(plain)
    mined = RunConfig(batch=512, loss="TripletMarginLoss", miner="TripletMarginMiner")
    assert estimated_bytes(mined) > 1_000_000_000
    capped = mined.replace(miner_options={"tuples_per_anchor": 100})
    assert written_triplets(capped) == 512 * 100
