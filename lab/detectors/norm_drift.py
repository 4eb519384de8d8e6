"""Unnormalised drift: the loss sees directions only, and the embeddings' lengths grow without end."""

from __future__ import annotations

import numpy as np

from lab.detectors.finding import Cure, Insight
from lab.frame import Frame
from lab.recording import Recording

KIND = "norm_drift"
REPLACES = ()
LONG, GROWN = 15.0, 10.0


def find(recording: Recording, frame: Frame) -> Insight | None:
    """Without output normalisation every gradient stands at a right angle to its embedding, so each update
    makes it longer."""
    if recording.config.output != "none":
        return None
    now, first = length(frame), length(recording.frames[0])
    if not (now > LONG and now > GROWN * first):
        return None
    sentence = (
        f"The embeddings drift outwards: their mean norm is {now:.3g}, at first it was {first:.2g}. The loss "
        "looks at directions alone, so longer embeddings only turn more slowly."
    )
    return Insight(
        KIND, sentence, "spread", now, Cure("Normalise the output and begin again.", "output", "l2")
    )


def length(frame: Frame) -> float:
    """Root of the mean squared norm of the probe's embeddings; of the map where that is all there is."""
    kept = frame.embeddings
    # the map of two coordinates is the embeddings themselves, in more than their 16 bits
    exact = frame.positions if kept is None or kept.shape[1] == 2 else kept
    return float(np.sqrt((exact.astype(np.float64) ** 2).sum(axis=1).mean()))
