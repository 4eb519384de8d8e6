"""Behaviour at the edges is tried: values that are known by hand, and a sentence for every loss."""

import math

import pytest
import torch

from lab.edges import edges, tried
from losslib import catalog


def by_title(name):
    return {edge.title: edge for edge in edges(name)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ContrastiveLoss", 1.0),  # its margin
        ("TripletMarginLoss", 0.2),  # its margin
        ("NTXentLoss", math.log(4)),  # one positive against three negatives
        ("SupConLoss", math.log(5)),  # five candidates
        ("HistogramLoss", 1.0),  # every negative counts as nearer
    ],
)
def test_value_at_collapse(name, value):
    edge = by_title(name)["Collapse"]
    assert edge.value == pytest.approx(value, abs=1e-9)
    assert edge.gradient == pytest.approx(0, abs=1e-9)
    assert edge.sentence == (
        f"On all 6 rows of two classes in one point the loss is {round(value, 4):g}, with no gradient."
    )


def test_without_positives_a_triplet_has_nothing_and_a_hinge_still_pushes():
    assert (
        by_title("TripletMarginLoss")["No positives"].value,
        by_title("NTXentLoss")["One class"].value,
    ) == (0, 0)
    assert by_title("ContrastiveLoss")["No positives"].gradient > 0
    assert by_title("ContrastiveLoss")["One class"].gradient > 0


@pytest.mark.parametrize("name", list(catalog.losses()))
def test_every_loss_is_finite_there_or_says_why_it_refuses(name):
    found = edges(name)
    assert len(found) >= 2
    for edge in found:
        assert edge.sentence.endswith(".")
        assert edge.value is None or (math.isfinite(edge.value) and math.isfinite(edge.gradient))


def test_a_refusal_is_told_in_its_own_words():
    rows = torch.eye(2, 4, dtype=torch.float64)
    edge = tried(catalog.get("CosFaceLoss"), "Labels", "labels out of range", rows, torch.tensor([0, 7]))
    assert edge.value is None
    assert "it refuses: CosFaceLoss: labels must lie in 0..1" in edge.sentence


def test_trying_takes_no_number_from_the_generator_of_the_runs():
    before = torch.get_rng_state()
    first = edges.__wrapped__("ManifoldLoss")
    assert torch.equal(torch.get_rng_state(), before)
    assert edges.__wrapped__("ManifoldLoss") == first
