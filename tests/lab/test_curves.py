"""Curves of one sliding pair: hand equations, the autograd of a batch built here, and every loss."""

import math

import numpy as np
import pytest
import torch

from lab.curves import loss_curves, sentences
from lab.scenes import built
from losslib import catalog, losses

HELD = 0.5  # cosine similarity of the pair at 60 degrees; its Euclidean distance is 1


def sides(name):
    found = loss_curves(name)
    return {curve.side: curve for curve in found.curves}


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_contrastive_is_a_line_and_a_hinge_at_its_margin():
    positive, negative = sides("ContrastiveLoss").values()
    close(positive.value, positive.at)  # the held negative stands at its margin: 0
    close(positive.slope, np.ones_like(positive.at))
    close(negative.value, 1 + np.maximum(1 - negative.at, 0))  # the held positive costs its distance
    clear = np.abs(negative.at - 1) > 1e-6
    close(negative.slope[clear], np.where(negative.at < 1, -1.0, 0.0)[clear])
    assert positive.dead == ()
    [(start, end)] = negative.dead
    assert start == pytest.approx(1, abs=1e-4)
    assert end == negative.at[-1]


def test_triplet_rests_on_the_far_side_of_its_margin():
    positive, negative = sides("TripletMarginLoss").values()
    close(positive.value, np.maximum(positive.at - 1 + 0.2, 0))
    close(negative.value, np.maximum(1 - negative.at + 0.2, 0))
    assert positive.dead[0][1] == pytest.approx(0.8, abs=1e-4)
    assert negative.dead[0][0] == pytest.approx(1.2, abs=1e-4)


def test_nt_xent_slopes_by_the_negatives_share_over_the_temperature():
    positive, negative = sides("NTXentLoss").values()
    tau = 0.07
    for curve, sign in ((positive, 1), (negative, -1)):
        excess = sign * (HELD - curve.at) / tau  # of the negative over the positive
        close(curve.value, np.log1p(np.exp(excess)))
        close(curve.slope, -sign / (1 + np.exp(-excess)) / tau)
    edge = HELD + tau * math.log(0.99 / 0.01)  # where the sigmoid falls to 1 %
    assert positive.dead[0][0] == pytest.approx(edge, abs=1e-3)


def test_arc_face_bends_at_the_angle_with_its_margin():
    positive, negative = sides("ArcFaceLoss").values()
    loss = losses.ArcFaceLoss(num_classes=2, embedding_size=4)
    own = np.cos(np.arccos(positive.at) + loss.margin)
    below = np.arccos(positive.at) + loss.margin < math.pi
    close(positive.value[below], np.log1p(np.exp(loss.scale * (0 - own)))[below])
    far = math.cos(math.pi / 2 + loss.margin)
    close(negative.value, np.log1p(np.exp(loss.scale * (negative.at - far))))


def test_a_curve_equals_the_pair_weights_of_the_batch_it_describes():
    axes = torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]], dtype=torch.float64) / 2
    held = 0.5 * axes[0] + math.sqrt(0.75) * axes[2]
    for name in ("MultiSimilarityLoss", "SupConLoss", "CircleLoss", "RankedListLoss"):
        loss = catalog.get(name)().double()
        for side, curve in sides(name).items():
            for place in (5, 30, 55):
                cosine = curve.at[place]
                if not loss.distance.is_inverted:
                    cosine = 1 - cosine**2 / 2
                x = cosine * axes[0] + math.sqrt(1 - cosine**2) * axes[1]
                labels = torch.tensor([0, 1] if side == "positive" else [1, 0])
                batch = (axes[:1], torch.tensor([0]), None, torch.stack([x, held]), labels)
                assert curve.value[place] == pytest.approx(float(loss(*batch)), rel=1e-8, abs=1e-10)
                weight = float(loss.pair_weights(*batch).weights[0, 0])
                assert curve.slope[place] == pytest.approx(weight, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("name", list(catalog.losses()))
def test_every_loss_has_curves_or_a_reason(name):
    found = loss_curves(name)
    said = sentences(found)
    assert all(sentence.endswith(".") for sentence in said)
    if not found.curves:
        assert said == (found.held,)
        assert said[0].startswith(f"There is no curve of one pair for the {catalog.get(name).title} loss: ")
        return
    assert found.inverted == catalog.get(name).default_distance().is_inverted
    assert [curve.side for curve in found.curves] == ["positive", "negative"]
    assert max(np.abs(curve.slope).max() for curve in found.curves) > 0.01
    for curve in found.curves:
        assert np.isfinite([curve.at, curve.value, curve.slope]).all()
        assert (np.diff(curve.at) >= 0).all()
        if catalog.get(name).stop_gradient:
            continue  # what training sees is no derivative of the value there
        steps = np.diff(curve.at) > 1e-4
        smooth = np.abs(np.diff(curve.slope)) < 0.05 * np.abs(curve.slope).max() + 1e-12
        rise = (np.diff(curve.value) / np.maximum(np.diff(curve.at), 1e-300))[steps & smooth]
        middle = ((curve.slope[1:] + curve.slope[:-1]) / 2)[steps & smooth]
        allowed = 0.05 * np.abs(curve.slope).max() + 1e-9
        assert np.abs(rise - middle).max(initial=0) < allowed


def test_building_takes_no_number_from_the_generator_of_the_runs():
    before = torch.get_rng_state()
    for name in catalog.losses():
        first, second = built(catalog.get(name)), built(catalog.get(name))
        assert all(torch.equal(*both) for both in zip(first.parameters(), second.parameters(), strict=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_sentences_say_where_each_side_rests():
    assert sentences(loss_curves("TripletMarginLoss"))[1:] == (
        "Euclidean distance of normalised embeddings: smaller is closer, and a gradient above 0 pulls the "
        "pair together.",
        "A positive pair has no gradient below 0.8.",
        "A negative pair has no gradient above 1.2.",
    )
    said = sentences(loss_curves("NTXentLoss"))
    assert "larger is closer, and a gradient below 0 pulls" in said[1]
    assert said[2] == "A positive pair has less than 1 % of the steepest gradient above 0.82."
    assert sentences(loss_curves("CenterLoss"))[-1] == "A negative pair has no gradient anywhere."
