"""The failure gallery: each trips its own detector and no other, its cure helps, healthy runs are quiet."""

import numpy as np
import pytest

from lab import glossary
from lab.detectors import detectors
from lab.detectors.high_temperature import evenness
from lab.detectors.swapped_sign import separation
from lab.frame import Histogram
from lab.insights import insights
from lab.lessons.__main__ import trained
from lab.lessons.failures import failures, get
from lab.lessons.failures.__main__ import HEALTHY, healthy, troubles, troubles_on_the_way
from losslib.errors import ParameterError

NAMES = [failure.name for failure in failures()]
FEW = (1, 5, 9, 13)  # of the 20 that `python -m lab.lessons.failures` trains


def test_the_eight_failures_have_eight_detectors():
    assert [failure.title for failure in failures()] == [
        "Collapse to the margin",
        "Temperature too small",
        "Temperature too large",
        "Hardest-negative collapse",
        "Swapped similarity sign",
        "Unnormalised drift",
        "No positives in the batch",
        "Class imbalance",
    ]
    kinds = {failure.detector for failure in failures()}
    assert len(kinds) == 8
    assert kinds == {*(one.kind for one in detectors()), "low_temperature", "no_positives"}
    assert len(HEALTHY) == 20
    assert all(glossary.define(term) for failure in failures() for term in failure.terms)
    with pytest.raises(ParameterError, match="did you mean swapped_sign"):
        get("swaped_sign")


@pytest.mark.parametrize("failure", failures(), ids=NAMES)
def test_a_cure_says_which_learning_rate_it_takes(failure):
    rate = failure.cure.get("lr", "")
    assert rate in failure.cure_title
    assert bool(rate) == ("learning rate" in failure.cure_title)


@pytest.mark.parametrize("failure", failures(), ids=NAMES)
def test_a_failure_trips_its_own_detector_alone_and_is_cured(failure):
    failed, cured = trained(failure.config(seed=3)), trained(failure.cured(seed=3))
    assert troubles(failed) == {failure.detector}
    assert failure.detector not in troubles(cured)
    found = next(one for one in insights(failed) if one.kind == failure.detector)
    assert found.cure is not None
    alike = {"data", "seed", "steps", "batch", "dim", "loss"}
    assert all(getattr(failed.config, name) == getattr(cured.config, name) for name in alike)


@pytest.mark.parametrize("number", FEW)
def test_a_healthy_run_is_quiet_at_every_frame(number):
    assert troubles_on_the_way(trained(healthy(number))) == {}


def test_separation_counts_pairs_of_bins_and_ties_half():
    # positives in bins 0 and 1, negatives in 1 and 2: of four pairings three closer and one tie
    histogram = Histogram(0.0, 3.0, np.array([1, 1, 0]), np.array([0, 1, 1]))
    assert separation(histogram, inverted=False) == pytest.approx((1 + 1 + 0.5 + 1) / 4)
    assert separation(histogram, inverted=True) == pytest.approx(1 - 3.5 / 4)


def test_evenness_is_the_effective_share_of_negatives():
    run = trained(get("temperature_too_large").config())
    assert evenness(run.frames[-1]) > 0.99
    sharp = trained(get("temperature_too_large").cured())
    assert evenness(sharp.frames[-1]) < 0.9
