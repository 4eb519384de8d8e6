"""Embeddings that somebody brings: losses, measures, hard pairs and suspects, against plain loops."""

import itertools
import math

import numpy as np
import pytest
import torch

from lab.embeddings.hard import HardPair, hardest_pairs, suspects
from lab.embeddings.losses import ROWS, loss_row, loss_rows, sample
from lab.embeddings.quality import chance_of, measures
from losslib import catalog
from losslib.errors import ParameterError
from tests.oracles import oracle


def clusters(count: int = 60, classes: int = 3, size: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    labels = torch.arange(count) % classes
    centres = 3 * torch.randn(classes, size, generator=generator, dtype=torch.float64)
    return centres[labels] + torch.randn(count, size, generator=generator, dtype=torch.float64), labels


@pytest.mark.parametrize("name", ["ContrastiveLoss", "TripletMarginLoss", "NTXentLoss", "CircleLoss"])
def test_a_loss_has_the_value_of_its_equation(name: str) -> None:
    rows, labels = clusters()
    found = loss_row(name, rows, labels)
    assert found.value == pytest.approx(float(oracle(name).value(rows, labels)), rel=1e-9)
    assert found.note == ""


def test_every_loss_has_a_value_or_a_reason() -> None:
    rows, labels = clusters()
    table = loss_rows(rows, labels)
    assert [row.name for row in table] == list(catalog.losses())
    for row in table:
        assert math.isfinite(row.value) != bool(row.note), row
    notes = {row.name: row.note for row in table}
    assert "training must fit" in notes["ArcFaceLoss"]
    assert "two views" in notes["VICRegLoss"]
    shares = {row.name: row.active_share for row in table}
    assert 0 < shares["TripletMarginLoss"] <= 1


def test_the_active_share_by_counting() -> None:
    rows, labels = clusters()
    distance = torch.cdist(rows / rows.norm(dim=1, keepdim=True), rows / rows.norm(dim=1, keepdim=True))
    same = labels[:, None] == labels
    other = ~torch.eye(len(labels), dtype=torch.bool)
    # pos_margin 0: every positive pair; neg_margin 1: negatives nearer than 1
    active = (same & other).sum() + (~same & (distance < 1)).sum()
    assert loss_row("ContrastiveLoss", rows, labels).active_share == pytest.approx(
        float(active / other.sum())
    )


def test_a_sample_keeps_rows_with_their_labels() -> None:
    rows = torch.arange(2000.0)[:, None]
    chosen, labels = sample(rows, torch.arange(2000) * 2)
    assert len(chosen) == ROWS == len(set(labels.tolist()))
    assert torch.equal(chosen[:, 0] * 2, labels.float())


def test_measures_of_two_far_clusters() -> None:
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [-1.0, 0.1]])
    labels = torch.tensor([0, 0, 1, 1])
    found = {one.name: one for one in measures(rows, labels)}
    assert found["recall@1"].text() == "100.0 %"
    assert found["recall@1"].reference == "chance 33.3 %"
    assert found["MAP@R"].value == 1
    assert found["NMI of k-means"].value == pytest.approx(1)
    gap = 2 - 2 / math.sqrt(1.01)  # squared distance within a cluster at length 1
    assert found["Alignment"].value == pytest.approx(gap, rel=1e-4)
    assert "recall@5" not in found


def test_measures_without_labels_and_of_one_row() -> None:
    rows, _ = clusters()
    names = {one.name for one in measures(rows, None)}
    assert names == {"Uniformity", "Spread", "Effective rank", "Mean cosine"}
    lone = {one.name: one.text() for one in measures(rows[:1], torch.zeros(1, dtype=torch.long))}
    assert lone["Uniformity"] == "not defined"


def test_collapsed_embeddings_are_measured_as_such() -> None:
    found = {one.name: one.value for one in measures(torch.ones(20, 4), torch.arange(20) % 2)}
    assert found["Spread"] == pytest.approx(0, abs=1e-6)
    assert found["Mean cosine"] == pytest.approx(1)
    assert found["Effective rank"] == pytest.approx(1)  # the least there is, so nothing is held against 0
    notes = {one.name: one.reference for one in measures(torch.ones(20, 4), None)}
    assert notes["Effective rank"] == "collapsed 1, at most 4"


def test_chance_is_that_of_drawing_another_row() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    hits = [a == b for a, b in itertools.permutations(labels.tolist(), 2)]
    assert chance_of(labels) == pytest.approx(np.mean(hits))


def plain_hardest(rows: torch.Tensor, labels: torch.Tensor, same: bool) -> list[HardPair]:
    unit = rows / rows.norm(dim=1, keepdim=True)
    found = [
        HardPair(i, j, float((unit[i] - unit[j]).norm()))
        for i, j in itertools.combinations(range(len(rows)), 2)
        if bool(labels[i] == labels[j]) == same
    ]
    return sorted(found, key=lambda pair: -pair.distance if same else pair.distance)


@pytest.mark.parametrize("entries", [4_000_000, 130])
def test_the_hardest_pairs_are_those_of_all_pairs(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.embeddings.hard.ENTRIES", entries)
    rows, labels = clusters()
    positives, negatives = hardest_pairs(rows, labels, 15)
    for found, same in ((positives, True), (negatives, False)):
        expected = plain_hardest(rows, labels, same)[:15]
        assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
        assert [pair.distance for pair in found] == pytest.approx([pair.distance for pair in expected])


def test_without_positives_or_negatives_there_are_no_such_pairs() -> None:
    rows, labels = clusters(6)
    assert hardest_pairs(rows, torch.arange(6))[0] == ()
    assert hardest_pairs(rows, torch.zeros(6, dtype=torch.long))[1] == ()
    with pytest.raises(ParameterError, match="count"):
        hardest_pairs(rows, labels, 0)


@pytest.mark.parametrize("entries", [4_000_000, 130])
def test_planted_wrong_labels_are_found(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.embeddings.hard.ENTRIES", entries)
    generator = torch.Generator().manual_seed(0)
    truth = torch.arange(90) % 3
    rows = 10 * torch.eye(3, dtype=torch.float64)[truth] + torch.randn(90, 3, generator=generator)
    labels = truth.clone()
    for row in (4, 40, 77):
        labels[row] = (truth[row] + 1) % 3
    found = suspects(rows, labels)
    assert {one.row for one in found} == {4, 40, 77}
    assert all(one.suggested == truth[one.row] and one.label == labels[one.row] for one in found)
    assert all(one.votes >= 0.8 and one.own <= 0.2 for one in found)
    assert suspects(rows, truth) == ()
    assert suspects(rows[:1], truth[:1]) == ()


@pytest.mark.parametrize("scale", [1e-30, 1e20, 1e35])
def test_vectors_of_any_length_in_single_precision_are_measured_by_their_directions(scale: float) -> None:
    rows, labels = clusters()
    usual = {one.name: one.value for one in measures(rows, labels)}
    scaled = (scale * rows).float()
    found = {one.name: one.value for one in measures(scaled, labels)}
    assert found == pytest.approx(usual, rel=2e-2)
    assert [pair[:2] for pair in hardest_pairs(scaled, labels)[0]] == [
        pair[:2] for pair in hardest_pairs(rows, labels)[0]
    ]


def test_a_loss_that_breaks_or_has_no_number_is_a_note_beside_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(catalog.get("NTXentLoss")):  # type: ignore[misc]
        def forward(self, *_: object) -> torch.Tensor:
            raise RuntimeError("weights are missing")

    class Endless(catalog.get("NTXentLoss")):  # type: ignore[misc]
        def forward(self, *_: object) -> torch.Tensor:
            return torch.tensor(math.inf)

    rows, labels = clusters()
    for made, said in (
        (Broken, "it fails here: RuntimeError: weights are missing"),
        (Endless, "not a finite"),
    ):
        monkeypatch.setattr(catalog, "get", lambda name, made=made: made)
        assert said in loss_row("NTXentLoss", rows, labels).note
