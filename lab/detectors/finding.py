"""What a detector finds: a sentence with its figure and, where there is one, the cure."""

from __future__ import annotations

from dataclasses import dataclass

from lab.frame import Frame
from lab.recording import Recording

# Before this step the encoder still leaves its initial narrow cone, which looks like collapse and is none.
SETTLED = 50
COLLAPSED_COSINE = 0.99
COLLAPSED_SHARE_OF_SPREAD = 0.02


@dataclass(frozen=True)
class Cure:
    """What to do: in words, and as a setting with its value where one turn of a control does it."""

    text: str
    setting: str = ""
    value: str = ""


@dataclass(frozen=True)
class Insight:
    """One finding.

    Args:
        kind: "active_share", "collapse", "flat", "no_positives", "vanished_gradient", "dead_margin",
            "low_temperature", "slow_points", "divergence", or the kind of a detector.
        sentence: what is seen, with the number in it.
        figure: name of the curve it rests on.
        value: its value.
        cure: what to do, or None where nothing is wrong.
    """

    kind: str
    sentence: str
    figure: str
    value: float
    cure: Cure | None = None


def is_collapsed(recording: Recording, frame: Frame) -> bool:
    """Whether the embeddings are nearly one point or one direction, and have left their initial cone."""
    cosine, spread = frame.collapse["mean_cosine"], frame.collapse["spread"]
    first = recording.frames[0].collapse["spread"]
    # Embeddings that are equal to the last digit are no initial cone, so they count from the first update.
    equal = spread == 0 and frame.step > 0 and len(frame.positions) > 1
    if frame.step < SETTLED and not equal:
        return False
    return bool(
        frame.at_origin or cosine > COLLAPSED_COSINE or equal or spread < COLLAPSED_SHARE_OF_SPREAD * first
    )
