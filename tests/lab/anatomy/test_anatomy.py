"""Families of options, the force portrait, the batch, the sentences; every loss, also at extremes."""

import math
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from lab.anatomy.batch import batch_of, class_centres, example_batch, pairs_rug, proxies_rug
from lab.anatomy.family import GRADIENT, LOSS, QUANTITIES, RISE, family, ladder, quantity, varied
from lab.anatomy.portrait import ANGLES, CLASSES, portrait
from lab.anatomy.slides import Along
from lab.anatomy.subject import Subject, distances_for, reducers_for
from lab.anatomy.words import (
    direction,
    headline,
    pull,
    turned_round,
    values_in_force,
    what_the_curves_say,
    what_the_family_says,
    what_the_portrait_says,
)
from lab.curves import curves_of
from lab.figures.loss_curves import loss_curves
from lab.presets import get as preset
from losslib import catalog, losses
from losslib.distances import CosineSimilarity, LpDistance

EXTREME = ("lowest", "highest")


def at_the_ends(name, which):
    """Every option at one end of what it accepts."""
    found = []
    for option, param in catalog.get(name).params.items():
        numbers = [
            v for v in param.valid.examples_in() if isinstance(v, int | float) and not isinstance(v, bool)
        ]
        if numbers and not param.fixed:
            found.append((option, min(numbers) if which == "lowest" else max(numbers)))
    return tuple(found)


@pytest.mark.parametrize("name", list(catalog.losses()))
def test_every_loss_can_be_taken_apart(name):
    few = (("num_proxies", 10),) if name == "ManifoldLoss" else ()  # fifty take seconds
    subject, batch = Subject(name, few), example_batch()
    curves, slide = curves_of(subject, batch, batch)
    assert [curve.side for curve in curves.curves] == ["positive", "negative"]
    assert len(curves.rug.positive) > 20
    said = what_the_curves_say(subject, curves)
    assert len(said) >= 4
    if options := varied(subject):
        found = family(subject, options[-1], slide, curves.axis, curves.inverted)
        assert sum(member.current for member in found.members) == 1
        current = next(member for member in found.members if member.current)
        steps = np.interp(current.sides["negative"].at, curves.curves[1].at, curves.curves[1].value)
        smooth = 0.1 * np.ptp(curves.curves[1].value) + 1e-9
        if name != "ManifoldLoss":  # its proxies are drawn anew for another number of them
            assert np.abs(steps - current.sides["negative"].value).max() <= smooth
        said += what_the_family_says(found)
    drawn = portrait(subject, 0)
    assert np.isfinite(drawn.force).all()
    assert np.abs(drawn.force).max() > 1e-3
    said += what_the_portrait_says(drawn)
    assert all(one.endswith(".") and "nan" not in one for one in said), said


@pytest.mark.parametrize("which", EXTREME)
@pytest.mark.parametrize("name", [name for name in catalog.losses() if name != "ManifoldLoss"])
def test_extreme_options_give_curves_or_a_sentence(name, which):
    subject = Subject(name, at_the_ends(name, which))
    try:
        curves, _ = curves_of(subject)
    except (ValueError, TypeError) as error:
        said = (f"{error}.",)
    else:
        said = what_the_curves_say(subject, curves)
        assert curves.curves or "There is no curve" in said[0]
    assert all(one.endswith(".") and len(one) > 20 for one in said)


def test_a_bad_option_is_a_sentence():
    with pytest.raises(ValueError, match="temperature must be a number > 0, got -1"):
        curves_of(Subject("NTXentLoss", (("temperature", -1.0),)))


def test_ladders_hold_the_current_value_and_both_ends():
    params = losses.ContrastiveLoss.params
    assert ladder(params["neg_margin"], 1.0) == (0, 0.5, 1.0, 1.5, 2)
    assert ladder(params["neg_margin"], 0.6) == (0, 0.6, 1.0, 1.5, 2)
    assert ladder(params["neg_margin"], 3.0) == (0, 0.5, 1.0, 1.5, 2, 3.0)
    assert ladder(params["squared"], False) == (False, True)
    temperature = losses.NTXentLoss.params["temperature"]
    assert ladder(temperature, 0.1) == pytest.approx((0.01, 0.0316, 0.1, 0.316, 1))
    assert ladder(losses.LargeMarginSoftmaxLoss.params["margin"], 4) == (1, 2, 4, 5, 6)
    assert ladder(losses.DecoupledContrastiveLoss.params["sigma"], None)[-1] is None
    assert ladder(losses.MarginLoss.params["num_classes"], None) == (None,)


def test_a_family_is_the_hinge_at_each_margin():
    subject = Subject("ContrastiveLoss", (("neg_margin", 0.6),))
    curves, slide = curves_of(subject)
    found = family(subject, "neg_margin", slide, curves.axis, curves.inverted)
    assert [(m.text, m.current) for m in found.members if m.current] == [("0.6", True)]
    for member in found.members:
        negative = member.sides["negative"]
        expected = np.maximum(member.value - negative.at, 0)
        np.testing.assert_allclose(quantity(negative, RISE), expected - expected.min(), atol=1e-9)
        np.testing.assert_allclose(quantity(negative, LOSS), 1 + expected, atol=1e-9)
        clear = np.abs(negative.at - member.value) > 1e-6
        np.testing.assert_allclose(
            quantity(negative, GRADIENT)[clear], -1.0 * (negative.at < member.value)[clear]
        )
    assert len(QUANTITIES) == 3
    said = what_the_family_says(found)
    assert "From 0 to 2 the steepest gradient of a negative pair rises from 0 to 1." in said
    assert "From 0 to 2 the steepest gradient of a positive pair stays at 1." in said


def test_a_refused_value_is_left_out_and_said():
    subject = Subject("ContrastiveLoss")
    _, slide = curves_of(subject)

    class Refusing:
        held = slide.held

        def along(self, one, side, angles):
            if one.value("neg_margin") == 2:
                raise ValueError("ContrastiveLoss: too large")
            return slide.along(one, side, angles)

    found = family(subject, "neg_margin", Refusing(), "distance", False)
    assert [member.value for member in found.members] == [0, 0.5, 1, 1.5]
    assert found.refused == ("Negative margin 2 is left out: ContrastiveLoss: too large.",)


@pytest.mark.parametrize("name", ["NTXentLoss", "SupConLoss", "CosFaceLoss", "SigLIPLoss"])
def test_the_portrait_is_minus_the_slope_of_the_loss(name):
    found = portrait(Subject(name), 1)
    row, column = 17, 6
    spacing = found.axis[1] - found.axis[0]
    sharp = np.gradient(found.value, spacing)
    for axis, slope in ((0, sharp[1]), (1, sharp[0])):
        assert found.force[row, column, axis] == pytest.approx(-slope[row, column], rel=0.12, abs=0.05)
    assert found.free == 1
    assert len(found.circle_force) == len(found.circle)


def test_the_portrait_of_a_triplet_is_the_loss_of_its_batch():
    found = portrait(Subject("TripletMarginLoss", distance="LpDistance(normalize_embeddings=False)"), 0)
    assert not len(found.circle), "an unnormalised distance sees lengths too"
    loss = losses.TripletMarginLoss(distance=LpDistance(normalize_embeddings=False))
    turn = torch.tensor(ANGLES, dtype=torch.float64) * math.pi / 180
    points = torch.stack([turn.cos(), turn.sin()], 1)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    for row, column in ((3, 4), (12, 20), (24, 0)):
        points[0] = torch.tensor([found.axis[column], found.axis[row]])
        x = points.clone().requires_grad_()
        value = loss(x, labels)
        value.backward()
        assert found.value[row, column] == pytest.approx(value.item(), rel=1e-9)
        np.testing.assert_allclose(found.force[row, column], -x.grad[0].numpy(), atol=1e-9)


def test_on_a_normalised_distance_forces_run_round_the_circle():
    found = portrait(Subject("NTXentLoss"), 2)
    outward = np.stack([np.cos(found.circle), np.sin(found.circle)], 1)
    assert np.abs((found.circle_force * outward).sum(1)).max() < 1e-9
    assert {int(label) for label in found.labels} == set(range(CLASSES))


def test_where_a_triplet_is_satisfied_nothing_pulls():
    found = portrait(Subject("TripletMarginLoss"), 0)
    row = column = int(np.abs(found.axis - math.cos(math.radians(45))).argmin())
    assert found.still[row, column], "between its own class's place and far from the others"
    assert 0 < found.still.mean() < 1
    assert any("Nothing pulls on" in said for said in what_the_portrait_says(found))


def test_the_example_batch_is_always_the_same():
    first = example_batch()
    example_batch.cache_clear()
    assert torch.equal(first.embeddings, example_batch().embeddings)
    assert first.labels.bincount().tolist() == [8, 8, 8, 8]
    assert "32 embeddings of 4 classes in 8 dimensions" in first.said


def test_the_rug_holds_every_pair_once():
    batch = example_batch()
    rug = pairs_rug(batch, CosineSimilarity())
    assert (len(rug.positive), len(rug.negative)) == (4 * 28, 6 * 64)
    cosine = torch.nn.functional.cosine_similarity(batch.embeddings[0], batch.embeddings[1], dim=0)
    assert np.abs(rug.positive - float(cosine)).min() < 1e-12
    centres = proxies_rug(batch, CosineSimilarity())
    assert (len(centres.positive), len(centres.negative)) == (32, 96)
    np.testing.assert_allclose(class_centres(batch)[2], batch.embeddings[16:24].mean(0))


def test_the_batch_of_a_run_is_its_newest_embeddings():
    recording = copy(preset("digits_on_a_circle").recording())  # the shipped one is everybody's
    batch = batch_of(recording)
    frame = recording.latest
    assert frame.embeddings is None
    assert batch.embeddings.shape == (32, 2)
    assert f"at step {frame.step}" in batch.said
    rows = {tuple(row) for row in frame.positions.astype(float).tolist()}
    assert all(tuple(row) in rows for row in batch.embeddings.tolist())
    values = batch.embeddings.numpy()
    places = [np.flatnonzero((frame.positions.astype(float) == row).all(1))[0] for row in values]
    names = recording.labels[places]
    assert len(set(zip(names.tolist(), batch.labels.tolist(), strict=True))) == 4
    recording.frames = [replace(frame, embeddings=np.tile(frame.positions, 2).astype(np.float16))]
    assert batch_of(recording).embeddings.shape == (32, 4)
    recording.frames = []
    assert batch_of(recording) is None


def test_which_distances_and_reducers_a_loss_takes():
    assert "CosineSimilarity" in distances_for("ContrastiveLoss")
    assert "LpDistance" not in distances_for("ContrastiveLoss"), "that is its default"
    assert distances_for("CircleLoss") == ("default", "DotProductSimilarity")
    assert distances_for("VICRegLoss") == ("default",)
    assert reducers_for("MarginLoss") == ("default",), "its divisor needs its own reducer"
    assert reducers_for("ContrastiveLoss") == ("default", "MeanReducer", "SumReducer")
    assert reducers_for("ThresholdConsistentMarginLoss") == ("default",)


def test_which_way_is_closer_is_said_with_its_converse():
    assert headline(False) == "Distance: smaller is closer"
    assert headline(True) == "Similarity: larger is closer"
    said = direction(losses.NTXentLoss())
    assert said.startswith("Cosine similarity: 1 is as near as two embeddings can be, -1 is as far apart")
    assert "Conversely, a distance is smaller for closer pairs" in said
    assert direction(losses.VICRegLoss()).startswith("This loss takes no distance")
    assert turned_round(Subject("ContrastiveLoss")) == ""
    assert turned_round(Subject("ContrastiveLoss", distance="SNRDistance")) == ""
    turned = turned_round(Subject("ContrastiveLoss", distance="CosineSimilarity"))
    assert "declared for Euclidean distance of normalised embeddings, where smaller is closer" in turned
    assert "With cosine similarity larger is closer" in turned
    assert "margin" in Subject("ContrastiveLoss", distance="CosineSimilarity").warned()[0]


def test_the_similarity_with_a_distances_margins_pushes_positives_apart():
    subject = Subject("ContrastiveLoss", distance="CosineSimilarity")
    curves, slide = curves_of(subject)
    positive = slide.along(subject, "positive", np.array([2.0]))
    assert pull(float(positive.slope[0]), inverted=True) == "pulled together"
    swapped = Subject("ContrastiveLoss", (("neg_margin", 0.0), ("pos_margin", 1.0)), "CosineSimilarity")
    negative = curves_of(swapped)[1].along(swapped, "negative", np.array([0.5]))
    np.testing.assert_allclose(negative.slope, [1.0])
    assert pull(1.0, inverted=True) == "pushed apart"
    assert pull(-1.0, inverted=False) == "pushed apart"
    assert pull(0.0, inverted=False) == "no force"
    assert curves.inverted


def test_values_stand_beside_their_symbols():
    line = values_in_force(Subject("ContrastiveLoss", (("neg_margin", 0.6),)))
    assert line == r"$m_{pos} = 0$&emsp; $m_{neg} = 0.6$&emsp; $\text{squared hinges} = \text{false}$"


def test_values_that_are_no_numbers_are_said():
    at = np.array([0.0, 1.0, 2.0])
    broken = Along(at, np.array([np.nan, 1.0, 2.0]), at)
    assert np.isnan(quantity(broken, RISE)[0])
    assert quantity(broken, RISE)[2] == 1.0
    assert pull(math.nan, inverted=False) == "not a finite number"


@pytest.mark.parametrize(("batch", "told"), [(example_batch(), True), (None, False)])
def test_a_cross_is_explained_where_there_is_one(batch, told):
    subject = Subject("NTXentLoss")
    curves, _ = curves_of(subject, batch, example_batch())
    crosses = sum(trace.marker.symbol == "x-thin" for trace in loss_curves(curves).data)
    assert crosses == (4 if told else 0), "two sides, loss and gradient"
    assert ("A cross on a curve marks" in " ".join(what_the_curves_say(subject, curves))) == told
