"""The range of a margin or temperature in which 10 to 60 % of the pairs have a gradient."""

import math

import pytest
import torch

from lab.advice import LEAST, MOST, Advice, advise, grid_of, widest_run
from losslib import catalog
from losslib.distances import LpDistance
from losslib.errors import ParameterError

ROWS = 101
# On a circle, so that Euclidean distances are 2 sin(angle / 2); one class a point, so that all are negatives.
ANGLES = torch.arange(ROWS, dtype=torch.float64) * 2 * math.pi / ROWS
CIRCLE = torch.stack([ANGLES.cos(), ANGLES.sin()], dim=1)
APART = torch.arange(ROWS)


def chord(share: float) -> float:
    """The margin that a share of the negatives on the circle is nearer than: angles are uniform to pi."""
    return 2 * math.sin(share * math.pi / 2)


def test_the_range_of_a_margin_from_the_distances_of_a_circle() -> None:
    advice = {one.option: one for one in advise("ContrastiveLoss", {}, CIRCLE, APART)}["neg_margin"]
    assert advice.range is not None
    # 100 other points: the share moves in steps of 2 %
    assert advice.range[0] == pytest.approx(chord(LEAST), abs=chord(0.12) - chord(0.1) + 0.002)
    assert advice.range[1] == pytest.approx(chord(MOST), abs=chord(0.62) - chord(0.6) + 0.002)
    # margin 1 is an angle of 60 degrees: 16 points on each side
    assert advice.share == pytest.approx(32 / 100)
    assert "32 %" in advice.sentence()
    assert advice.sentence().startswith("Negative margin is 1, where ")
    assert "neg_margin" not in advice.sentence()
    assert f"{advice.range[0]:.3g} to {advice.range[1]:.3g}" in advice.sentence()


@pytest.mark.parametrize("planted", [0.35, 1.1])
def test_the_range_covers_a_planted_optimum(planted: float) -> None:
    """Two classes at a distance: negatives lie around `planted`, so the margin must reach into them."""
    generator = torch.Generator().manual_seed(0)
    centre = torch.tensor([[0.0, 0.0], [planted, 0.0]], dtype=torch.float64)
    labels = torch.arange(200) % 2
    rows = centre[labels] + 0.03 * torch.randn(200, 2, generator=generator, dtype=torch.float64)
    found = {one.option: one for one in contrastive(rows, labels)}["neg_margin"]
    gaps = torch.cdist(rows[labels == 0], rows[labels == 1]).flatten()
    assert found.range is not None
    assert found.range[0] < float(gaps.quantile(0.35)) < found.range[1]


def contrastive(rows: torch.Tensor, labels: torch.Tensor) -> tuple[Advice, ...]:
    """With plain distances, and positives at rest."""
    options = {"pos_margin": 5.0, "distance": LpDistance(normalize_embeddings=False)}
    return advise("ContrastiveLoss", options, rows, labels)


@pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "DecoupledContrastiveLoss"])
def test_the_range_of_a_temperature_by_counting(name: str) -> None:
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(60, 8, generator=generator, dtype=torch.float64)
    labels = torch.arange(60) % 6
    advice = {one.option: one for one in advise(name, {}, rows, labels)}["temperature"]
    assert advice.range is not None
    unit = rows / rows.norm(dim=1, keepdim=True)
    similarity = unit @ unit.T
    negative = labels[:, None] != labels
    for value in advice.range:
        # among the negatives of an anchor the weight is exp(s / t) up to a common factor
        weight = torch.where(negative, ((similarity - 1) / value).exp(), 0)
        counted = (weight > 0.01 * weight.max(dim=1, keepdim=True).values).sum() / negative.sum()
        assert 0.02 < float(counted) < 0.75
    low, high = advice.range
    assert 0.01 <= low < high <= 1


def test_options_that_decide_nothing_are_left_out() -> None:
    options = [one.option for one in advise("MarginLoss", {}, CIRCLE, torch.arange(ROWS) % 5)]
    assert "nu" not in options
    assert {"margin", "beta"} & set(options)


def test_a_range_that_lies_between_two_values_of_the_grid() -> None:
    """Corners of a simplex, all about 0.55 apart: the share jumps from 0 to 1 between 0.5 and 0.625."""
    generator = torch.Generator().manual_seed(0)
    noise = 0.002 * torch.randn(40, 40, generator=generator, dtype=torch.float64)
    rows = torch.eye(40, dtype=torch.float64) * 0.55 / math.sqrt(2) + noise
    found = {one.option: one for one in contrastive(rows, torch.arange(40))}["neg_margin"]
    assert found.range is not None
    assert max(found.shares[:5]) == 0
    assert min(found.shares[5:]) == 1
    gaps = torch.pdist(rows)
    assert found.range == pytest.approx((float(gaps.quantile(0.1)), float(gaps.quantile(0.6))), abs=0.001)


def test_where_there_is_no_such_range() -> None:
    at_one_point = torch.zeros(ROWS, 2)
    assert advise("ContrastiveLoss", {}, at_one_point, torch.zeros(ROWS, dtype=torch.long)) == ()
    (found,) = advise("ContrastiveLoss", {}, at_one_point, torch.arange(ROWS) % 5)
    # the negatives, 80 % of the pairs, have a gradient together or not at all
    assert (found.option, found.range) == ("neg_margin", None)
    assert sorted({round(share, 1) for share in found.shares}) == [0.0, 0.8]
    assert "never 10 to 60 %" in found.sentence()


def test_a_loss_without_pairs_says_so() -> None:
    with pytest.raises(ParameterError, match="the ArcFace loss weighs no pairs"):
        advise("ArcFaceLoss", {}, CIRCLE, APART)


@pytest.mark.parametrize(
    ("inside", "run"),
    [
        ([False, True, True, False, True], (1, 2)),
        ([True], (0, 0)),
        ([True, False, True, True], (2, 3)),
        ([False], None),
        ([], None),
    ],
)
def test_the_widest_run(inside: list[bool], run: tuple[int, int] | None) -> None:
    assert widest_run(inside) == run


def test_grids_follow_the_declaration() -> None:
    temperature = catalog.get("NTXentLoss").params["temperature"]
    margin = catalog.get("TripletMarginLoss").params["margin"]
    assert grid_of(temperature)[8] == pytest.approx(0.1)
    assert grid_of(margin)[8] == pytest.approx(0.5)
