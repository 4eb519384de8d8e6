"""A temperature so large that all negatives weigh the same: near or far makes no difference to the loss."""

from __future__ import annotations

import math

import numpy as np

from lab.detectors.finding import SETTLED, Insight, temperature_cure
from lab.frame import Frame
from lab.recording import Recording

KIND = "high_temperature"
REPLACES = ()
HIGH, EVEN = 1.0, 0.97


def find(recording: Recording, frame: Frame) -> Insight | None:
    """exp(entropy) of each anchor's negative weights, as a share of its negatives: 1 when all are equal."""
    mark = next((one for one in frame.marks if one.kind == "temperature"), None)
    if mark is None or mark.value <= HIGH or frame.step < SETTLED:
        return None
    even = evenness(frame)
    if not even > EVEN:
        return None
    sentence = (
        f"At temperature {mark.value:g} all negatives weigh the same: an anchor sees {100 * even:.0f} % of "
        "them as if they were equally near, so nothing pushes the nearest away."
    )
    cure = temperature_cure(recording.config, warmer=False)
    return Insight(KIND, sentence, "active_share", even, cure)


def evenness(frame: Frame) -> float:
    """Mean effective share of an anchor's negatives, 0 to 1; NaN without any."""
    weights, negative = frame.batch.weights.astype(np.float64), ~frame.batch.positive
    np.fill_diagonal(negative, val=False)
    weights[~negative] = 0
    total, count = weights.sum(axis=1), negative.sum(axis=1)
    counted = (total > 0) & (count > 0)
    if not counted.any():
        return math.nan
    shares = weights[counted] / total[counted, None]
    entropy = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    return float((np.exp(entropy) / count[counted]).mean())
