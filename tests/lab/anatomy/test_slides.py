"""A sliding pair: hand equations, whole batches in loops, and finite differences for every loss."""

import math

import numpy as np
import pytest
import torch

from lab.anatomy.batch import example_batch
from lab.anatomy.slides import SIDES, EntrySlide, RowSlide, ways
from lab.anatomy.subject import Subject
from lab.curves import curves_of
from losslib import catalog

ANGLES = np.linspace(0.4, 2.7, 9) + 0.0123
D, S = 1.0, 0.5  # the held pair: Euclidean distance and cosine similarity at 60 degrees


def hinge(x):
    return np.maximum(x, 0)


def log1pexp(x):
    return np.logaddexp(0, x)


def margin_loss(d_ap, d_an):
    terms = [hinge(d_ap - 1.1 + 0.3), hinge(1.1 - d_an + 0.3)]
    return sum(terms) / np.maximum(sum((np.asarray(term) > 0) * 1.0 for term in terms), 1)


# name, options, the loss of the positive pair's and of the negative pair's place; the other is held
BY_HAND = [
    (
        "ContrastiveLoss",
        {"pos_margin": 0.2, "neg_margin": 1.4},
        lambda p, n: hinge(p - 0.2) + hinge(1.4 - n),
        D,
    ),
    ("ContrastiveLoss", {"squared": True}, lambda p, n: p**2 / 2 + hinge(1 - n) ** 2 / 2, D),
    ("TripletMarginLoss", {"margin": 0.5}, lambda p, n: hinge(p - n + 0.5), D),
    ("MarginLoss", {"beta": 1.1, "margin": 0.3}, margin_loss, D),
    ("GeneralizedLiftedStructureLoss", {"neg_margin": 1.3}, lambda p, n: hinge(p + 1.3 - n), D),
    ("NTXentLoss", {"temperature": 0.2}, lambda p, n: log1pexp((n - p) / 0.2), S),
    ("SupConLoss", {"temperature": 0.3}, lambda p, n: log1pexp((n - p) / 0.3), S),
    ("DecoupledContrastiveLoss", {"temperature": 0.25}, lambda p, n: (n - p) / 0.25, S),
    ("CosineEmbeddingLoss", {"margin": 0.2}, lambda p, n: (1 - p + hinge(n - 0.2)) / 2, S),
    ("TripletLoss", {"margin": 0.3}, lambda p, n: hinge(n - p + 0.3), S),
    (
        "MultiSimilarityLoss",
        {"alpha": 3.0, "beta": 10.0, "base": 0.4},
        lambda p, n: log1pexp(-3 * (p - 0.4)) / 3 + log1pexp(10 * (n - 0.4)) / 10,
        S,
    ),
    (
        "ThresholdConsistentMarginLoss",
        {"margin_plus": 0.8, "margin_minus": 0.3, "lambda_minus": 2.0},
        lambda p, n: hinge(0.8 - p) + 2 * hinge(n - 0.3),
        S,
    ),
    ("NCALoss", {"softmax_scale": 3.0}, lambda p, n: log1pexp(3 * (p - n)), D),
    ("CosFaceLoss", {"margin": 0.2, "scale": 10.0}, lambda p, n: log1pexp(10 * (n - p + 0.2)), 0.0),
    ("NormalizedSoftmaxLoss", {"temperature": 0.2}, lambda p, n: log1pexp((n - p) / 0.2), 0.0),
    ("ProxyNCALoss", {"softmax_scale": 2.0}, lambda p, n: log1pexp(2 * (p - n)), 2.0),
]


@pytest.mark.parametrize(("name", "options", "equation", "held"), BY_HAND)
def test_few_pairs_give_the_equation(name, options, equation, held):
    subject = Subject(name, tuple(options.items()))
    slide = ways(subject.cls, None)[0].slide
    for side in ("positive", "negative"):
        found = slide.along(subject, side, ANGLES)

        def by_hand(at, side=side):
            return equation(at, held) if side == "positive" else equation(held, at)

        np.testing.assert_allclose(found.value, by_hand(found.at), rtol=1e-9, atol=1e-9)
        rise = (by_hand(found.at + 1e-6) - by_hand(found.at - 1e-6)) / 2e-6
        np.testing.assert_allclose(found.slope, rise, rtol=1e-5, atol=1e-5)


def test_circle_keeps_its_weights_out_of_the_gradient():
    margin, gamma = 0.25, 32.0
    slide = ways(catalog.get("CircleLoss"), None)[0].slide
    subject = Subject("CircleLoss", (("margin", margin), ("gamma", gamma)))
    found = slide.along(subject, "positive", ANGLES)
    of_negative = gamma * hinge(S + margin) * (S - margin)
    weight = hinge(1 + margin - found.at)
    z = of_negative - gamma * weight * (found.at - 1 + margin)
    np.testing.assert_allclose(found.value, log1pexp(z), rtol=1e-9)
    np.testing.assert_allclose(found.slope, -gamma * weight / (1 + np.exp(-z)), rtol=1e-6, atol=1e-9)


def contrastive(values, same):
    near = [d for d in values[same] if d > 0]
    far = [1 - d for d in values[~same & ~np.eye(len(same), dtype=bool)] if d < 1]
    return np.mean(near) + np.mean(far)


def nt_xent(values, same):
    terms = []
    for i in range(len(values)):
        negatives = [j for j in range(len(values)) if not same[i, j] and j != i]
        for j in range(len(values)):
            if same[i, j]:
                logits = np.array([values[i, j], *values[i, negatives]]) / 0.07
                terms.append(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[0])
    return np.mean(terms)


def triplet_margin(values, same):
    terms = []
    for i in range(len(values)):
        negatives = ~same[i] & (np.arange(len(values)) != i)
        for j in np.flatnonzero(same[i]):
            terms += [values[i, j] - far + 0.2 for far in values[i, negatives]]
    return np.mean([term for term in terms if term > 0])


@pytest.mark.parametrize(
    ("name", "whole"),
    [("ContrastiveLoss", contrastive), ("NTXentLoss", nt_xent), ("TripletMarginLoss", triplet_margin)],
)
def test_in_a_batch_only_the_slid_pair_changes(name, whole):
    batch, subject = example_batch(), Subject(name)
    labels = batch.labels.numpy()
    same = (labels[:, None] == labels) & ~np.eye(len(labels), dtype=bool)
    before = subject.built().distance(batch.embeddings).numpy()
    weights = subject.built().pair_weights(batch.embeddings, batch.labels).weights.numpy()
    both = np.abs(weights + weights.T)
    slide = EntrySlide(batch)
    for side, mask in (("positive", same), ("negative", ~same & ~np.eye(len(labels), dtype=bool))):
        start = slide.start(subject, side)
        place = np.argwhere(mask & np.isclose(before, start, rtol=0, atol=1e-12))[0]
        assert both[tuple(place)] == pytest.approx(both[mask].max(), rel=1e-6), "the heaviest pair slides"
        found = slide.along(subject, side, ANGLES)
        for at, value in zip(found.at, found.value, strict=True):
            changed = before.copy()
            changed[place[0], place[1]] = changed[place[1], place[0]] = at
            assert value == pytest.approx(whole(changed, same), rel=1e-9)


def test_where_the_pair_truly_stands_it_has_the_loss_of_the_batch():
    batch, subject = example_batch(), Subject("MultiSimilarityLoss")
    loss = subject.built()
    weights = loss.pair_weights(batch.embeddings, batch.labels)
    found, slide = curves_of(subject, batch)
    assert isinstance(slide, EntrySlide)
    for curve in found.curves:
        mask = weights.positive if curve.side == "positive" else weights.negative
        value = np.interp(curve.start, curve.at, curve.value)
        slope = np.interp(curve.start, curve.at, curve.slope)
        assert value == pytest.approx(float(loss(batch.embeddings, batch.labels)), rel=1e-3)
        heaviest = (weights.weights + weights.weights.T)[mask]
        expected = heaviest[heaviest.abs().argmax()]
        assert slope == pytest.approx(float(expected), rel=2e-2)


def first_that_shows(subject, batch):
    """The first slide that the loss takes and that changes it."""
    for way in ways(subject.cls, batch):
        try:
            slopes = [way.slide.along(subject, side, ANGLES[1::3]).slope for side in SIDES]
        except (ValueError, TypeError):
            continue
        if np.abs(slopes).max() > way.least:
            return way.slide
    return None


@pytest.mark.parametrize("name", list(catalog.losses()))
@pytest.mark.parametrize("inside", [False, True], ids=["few", "batch"])
def test_the_gradient_of_every_loss_is_the_slope_of_its_value(name, inside):
    few = (("num_proxies", 10),) if name == "ManifoldLoss" else ()  # fifty take seconds
    subject, batch = Subject(name, few), example_batch() if inside else None
    slide = first_that_shows(subject, batch)
    if slide is None:
        assert name == "ManifoldLoss"
        assert not inside
        return
    assert isinstance(slide, EntrySlide if inside and hasattr(subject.cls, "pair_weights") else RowSlide)
    if subject.cls.stop_gradient:
        return
    step = 1e-5
    for side in SIDES:
        here, after, before = (slide.along(subject, side, ANGLES + h) for h in (0, step, -step))
        # beside a kink one of the two differences is the gradient's
        rises = [(there.value - here.value) / (there.at - here.at) for there in (after, before)]
        scale = np.abs(here.slope).max()
        errors = np.min([np.abs(rise - here.slope) for rise in rises], axis=0)
        assert (errors <= 2e-3 * np.abs(here.slope) + 1e-3 * scale + 1e-7).all(), side


def test_a_jump_is_found_where_the_number_of_terms_changes():
    curves, _ = curves_of(Subject("ContrastiveLoss"), example_batch())
    negative = curves.curves[1]
    # beyond the margin the pair leaves the mean of those above 0, which then rises at once
    assert negative.jumps == (pytest.approx(1.0, abs=1e-3),)
    assert curves.curves[0].jumps == ()
    assert curves_of(Subject("TripletMarginLoss", (("smooth_loss", True),)))[0].curves[0].jumps == ()
    arc = curves_of(Subject("ArcFaceLoss"))[0].curves[0]
    assert arc.jumps == (pytest.approx(math.cos(math.pi - 0.5), abs=1e-3),)


def test_looking_takes_no_number_from_the_generator_of_the_runs():
    before = torch.get_rng_state()
    curves_of(Subject("TripletMarginLoss", (("triplets_per_anchor", 3),)), example_batch())
    assert torch.equal(torch.get_rng_state(), before)
