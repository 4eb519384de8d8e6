"""Unnormalised drift: the loss sees directions only, and the embeddings' lengths grow without end."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from lab.detectors.finding import Cure, Insight
from lab.frame import Frame
from lab.pairing import TWO_VIEWS, small_loss
from lab.recording import Recording
from lab.short import short

KIND = "norm_drift"
REPLACES = ()
LONG, GROWN = 15.0, 10.0
DIRECTIONS = "The loss looks at directions alone, so longer embeddings only turn more slowly."
LENGTHS = "The loss sees lengths as well, and growing them may lower it although no class is told better."


def find(recording: Recording, frame: Frame) -> Insight | None:
    """Without output normalisation the gradient of a loss of directions stands at a right angle to each
    embedding, so that every update makes it longer."""
    if recording.config.output != "none":
        return None
    now, first = length(frame), length(recording.frames[0])
    if not (now > LONG and now > GROWN * first):
        return None
    sentence = (
        f"The embeddings drift outwards: their mean norm is {short(now)}, at first it was {first:.2g}. "
        + (LENGTHS if sees_lengths(recording.config.loss) else DIRECTIONS)
    )
    return Insight(
        KIND, sentence, "spread", now, Cure("Normalise the output and begin again.", "output", "l2")
    )


@cache
def sees_lengths(loss: str) -> bool:
    """Whether a loss changes with the lengths of the embeddings, at its default options."""
    tried, labels = small_loss(loss), torch.tensor([0, 0, 1, 1])
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        x, y = torch.randn(2, 4, 4).unbind()
        two_views = TWO_VIEWS in tried.needs
        short, long = (
            tried(scale * x, ref_emb=scale * y) if two_views else tried(scale * x, labels) for scale in (1, 3)
        )
    return not torch.allclose(short, long, rtol=1e-4, atol=1e-6)


def length(frame: Frame) -> float:
    """Root of the mean squared norm of the probe's embeddings; of the map where that is all there is."""
    kept = frame.embeddings
    # the map of two coordinates is the embeddings themselves, in more than their 16 bits
    exact = frame.positions if kept is None or kept.shape[1] == 2 else kept
    return float(np.sqrt((exact.astype(np.float64) ** 2).sum(axis=1).mean()))
