"""Settings in sentences are called as their controls are."""

import pytest

import datasets
from lab.config import RunConfig
from lab.detectors.finding import temperature_cure
from lab.settings import in_words, settings
from lab.titles import called, declaration, valued
from losslib import catalog
from losslib.errors import ParameterError


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("lr", "learning rate"),
        ("dim", "embedding size"),
        ("ContrastiveLoss.neg_margin", "negative margin"),
        ("TripletMarginMiner.margin", "margin of the miner"),
        ("blobs.spread", "spread of the data"),
    ],
)
def test_a_setting_in_a_sentence(key, words):
    assert called(key) == words


def test_a_loss_is_its_title_and_an_option_has_its_value():
    assert valued("loss", "NTXentLoss") == "NT-Xent"
    assert valued("data", "mnist") == "MNIST"
    assert valued("SupConLoss.temperature", "0.1") == "temperature 0.1"


def test_settings_of_one_run_are_told_apart():
    """No two of one form's settings are called alike, so that a sentence says which is meant."""
    losses, miners = catalog.losses(), catalog.miners()
    for owners in (losses, miners, datasets.catalog()):
        for owner, cls in owners.items():
            declared = cls.options if owners is datasets.catalog() else cls.params
            names = [called(f"{owner}.{name}") for name in declared]
            assert len({*names}) == len(names), owner
    assert len({cls.title for cls in losses.values()}) == len(losses)
    assert len({called(name) for name in settings()}) == len(settings())


def test_what_a_field_refuses_is_called_as_the_field():
    param = declaration("ContrastiveLoss.neg_margin")
    with pytest.raises(ParameterError, match=r"^Contrastive: negative margin must be a finite number"):
        in_words(param).parse("wide", "Contrastive")
    assert param.name == "neg_margin"


def test_a_cure_names_the_scale_as_its_control_does():
    cure = temperature_cure(RunConfig(loss="NCALoss"), warmer=True)
    assert cure.text == "Lower softmax scale, which is one over the temperature."
