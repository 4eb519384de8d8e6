"""A swapped sign: the loss falls, and positives end no closer than negatives."""

from __future__ import annotations

import math

import numpy as np

from lab.detectors.finding import SETTLED, Cure, Insight, has_vanished, is_collapsed
from lab.frame import Frame, Histogram
from lab.recording import Recording
from lab.short import short
from losslib import catalog

KIND = "swapped_sign"
REPLACES = ("slow_points",)
NO_CLOSER = 0.52  # AUC; 0.5 is chance
FELL = 0.1  # of the loss at first


def find(recording: Recording, frame: Frame) -> Insight | None:
    """What the loss is made to want has happened, and it was not that positives are closer."""
    first = recording.frames[0]
    if frame.step < SETTLED or not frame.batch.positive.any():
        return None
    if is_collapsed(recording, frame) or has_vanished(recording, frame):
        return None
    if not first.loss - frame.loss > FELL * abs(first.loss):
        return None
    distance = catalog.get(recording.config.loss).default_distance()
    auc = separation(frame.histogram, bool(distance.is_inverted))
    if not auc < NO_CLOSER:
        return None
    sentence = (
        f"The loss falls, from {short(first.loss)} to {short(frame.loss)}, but positives are no closer than "
        f"negatives (AUC {auc:.2f}, chance is 0.5): a sign is swapped, or a similarity taken for a distance."
    )
    cure = Cure("Turn the sign round: closeness must grow for positives and shrink for negatives.")
    return Insight(KIND, sentence, "recall_at_1", frame.quality["recall_at_1"] or 0.0, cure)


def separation(histogram: Histogram, inverted: bool) -> float:
    """Probability that a positive pair is closer than a negative one, from the bins; NaN without pairs."""
    positive, negative = histogram.positive.astype(np.float64), histogram.negative.astype(np.float64)
    if not positive.sum() or not negative.sum():
        return math.nan
    positive, negative = positive / positive.sum(), negative / negative.sum()
    farther = 1 - np.cumsum(negative) + negative / 2  # ties counted half
    auc = float((positive * farther).sum())
    return 1 - auc if inverted else auc
