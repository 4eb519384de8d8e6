"""Class imbalance: one class fills the batch, and small ones bring hardly a positive pair."""

from __future__ import annotations

import numpy as np

from lab.detectors.finding import Cure, Insight
from lab.frame import Frame
from lab.recording import Recording

KIND = "class_imbalance"
REPLACES = ()
TIMES = 3.0  # the middle class
FEWEST = 24  # rows: below that, chance alone makes batches uneven
ENOUGH = "8"


def find(recording: Recording, frame: Frame) -> Insight | None:
    """The largest class of the batch against the middle one, where labels make pairs of a uniform batch."""
    config, classes = recording.config, len(recording.class_names)
    labels = frame.batch.labels
    if config.pairing != "label" or config.per_class or len(labels) < FEWEST or classes < 3:
        return None
    counts = np.bincount(labels, minlength=classes)
    largest, middle = int(counts.max()), float(np.median(counts))
    if not largest > TIMES * max(middle, 1.0) or largest < len(labels) / 3:
        return None
    few = int((counts < 2).sum())
    pairs = (counts * (counts - 1)).astype(np.float64)
    share = float(pairs.max() / pairs.sum())
    sentence = (
        f"One class fills the batch: {largest} of {len(labels)} samples, {100 * share:.0f} % of the positive "
        f"pairs. {few} of {classes} classes have no positive pair at all."
    )
    cure = Cure("Draw the same number of samples from each class.", "per_class", ENOUGH)
    return Insight(KIND, sentence, "active_share", share, cure)
