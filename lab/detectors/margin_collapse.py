"""Collapse to the margin: all embeddings are one point, so every pair costs exactly the margin."""

from __future__ import annotations

from lab.config import in_force
from lab.detectors.finding import Cure, Insight, is_collapsed, still_apart
from lab.detectors.hard_negatives import mines_the_hardest
from lab.frame import Frame
from lab.recording import Recording
from lab.settings import settings
from lab.short import short

KIND = "margin_collapse"
REPLACES = ("collapse",)
NEAR = 0.1  # of the margin
MARGINS = ("neg_margin", "margin")


def find(recording: Recording, frame: Frame) -> Insight | None:
    """At one point d = 0 for all, so a hinge of a margin m is m whatever the pair."""
    config = recording.config
    values = in_force(config)
    margin = next((values[name] for name in MARGINS if name in values), None)
    if margin is None or not margin > 0 or mines_the_hardest(config):
        return None
    if frame.at_origin:  # zero vectors have their own sentence
        return None
    if not is_collapsed(recording, frame) or abs(frame.loss - margin) > NEAR * margin:
        return None
    sentence = (
        f"Collapse to the margin: the loss is {short(frame.loss)}, its margin {margin:g}. All embeddings are "
        f"nearly one point (mean cosine {frame.collapse['mean_cosine']:.3f}), so every pair costs the margin."
    )
    sentence += still_apart(recording, frame)
    rate = f"{min(values['lr'] / 10, settings()['lr'].default):g}"
    return Insight(
        KIND, sentence, "loss", frame.loss, Cure("Lower the learning rate and begin again.", "lr", rate)
    )
