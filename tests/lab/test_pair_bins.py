"""Which pairs stand in which bin: against the frame's own histograms, and distances measured by hand."""

import numpy as np
import pytest

from lab.config import RunConfig
from lab.pair_bins import pair_bins
from lab.run import Run


def trained(**settings):
    run = Run(
        RunConfig(data="blobs", data_options={"points": 120}, batch=16, per_class=4, steps=4, **settings)
    )
    for _ in run:
        pass
    return run


@pytest.mark.parametrize(
    "settings",
    [{}, {"encoder": "free", "dim": 5, "output": "none"}, {"loss": "NTXentLoss", "dim": 3}],
    ids=["distance", "free points", "similarity"],
)
def test_pairs_fill_the_bins_that_the_frame_counted(settings):
    run = trained(**settings)
    frame = run.recording.latest
    found = pair_bins(run.recording, run.data, frame)
    for side, bins in (
        ("positive", found.bins[: found.positives]),
        ("negative", found.bins[found.positives :]),
    ):
        counted = getattr(frame.histogram, side)
        assert len(bins) == counted.sum() > 100
        # kept embeddings are rounded to half precision, so pairs at a bin's edge may change sides
        moved = np.abs(np.bincount(bins, minlength=64) - counted).sum() / 2
        assert moved < 0.03 * len(bins)
    one, other = run.recording.labels[found.pairs.astype(int)].T
    same = one == other
    assert same[: found.positives].all()
    assert not same[found.positives :].any()


def test_bins_are_those_of_distances_measured_by_hand():
    run = trained()
    frame = run.recording.latest
    found = pair_bins(run.recording, run.data, frame)
    points = frame.embeddings.astype(np.float64)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    distance = np.linalg.norm(points[found.pairs[:, 0]] - points[found.pairs[:, 1]], axis=1)
    exact = distance / 2 * 64  # on the unit circle the axis runs from 0 to 2, in 64 bins
    assert (frame.histogram.low, frame.histogram.high) == (0.0, 2.0)
    assert np.all((found.bins >= exact - 1.001) & (found.bins <= exact + 0.001))


def test_two_views_are_no_points_of_the_map():
    run = trained(loss="NTXentLoss", pairing="views")
    assert len(pair_bins(run.recording, run.data, run.recording.latest).bins) == 0
