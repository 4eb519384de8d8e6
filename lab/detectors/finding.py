"""What a detector finds: a sentence with its figure and, where there is one, the cure."""

from __future__ import annotations

from dataclasses import dataclass

from lab.config import RunConfig
from lab.frame import Frame
from lab.percent import percent
from lab.recording import Recording
from losslib import catalog

# Before this step the encoder still leaves its initial narrow cone, which looks like collapse and is none.
SETTLED = 50
COLLAPSED_COSINE = 0.99
COLLAPSED_SHARE_OF_SPREAD = 0.02
DEAD_SHARE = 0.01
VANISHED_SHARE = 1e-4
APART_RECALL = 0.5
BETTER_TEMPERATURE = 0.1
SCALES = ("scale", "softmax_scale", "gamma")  # options that are one over a temperature


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


def still_apart(recording: Recording, frame: Frame) -> str:
    """What a high recall@1 means where all embeddings are nearly one point, as a further sentence, or ""."""
    recall = frame.quality["recall_at_1"]
    if recall is None or not recall >= max(APART_RECALL, 2 * recording.chance):
        return ""
    return f" Recall@1 is still {percent(recall, 0)}: it asks which is nearest, not how near."


def has_vanished(recording: Recording, frame: Frame) -> bool:
    """Whether active pairs give the encoder next to no gradient, measured by what they gave at first."""
    first, now = recording.frames[0].gradient_norm, frame.gradient_norm
    return frame.step >= 10 and now < VANISHED_SHARE * first and frame.active_share >= DEAD_SHARE


def temperature_cure(config: RunConfig, warmer: bool) -> Cure:
    """A higher or a lower temperature, by the option that sets it: itself, or a scale that it is one over."""
    options = catalog.get(config.loss).params
    if "temperature" in options:
        words = "Raise the temperature." if warmer else "Lower the temperature."
        return Cure(words, f"{config.loss}.temperature", f"{BETTER_TEMPERATURE:g}")
    scale = next((name for name in SCALES if name in options), "")
    named = options[scale].title.lower() if scale else "the scale"
    words = f"{'Lower' if warmer else 'Raise'} {named}, which is one over the temperature."
    return Cure(words, f"{config.loss}.{scale}", f"{1 / BETTER_TEMPERATURE:g}") if scale else Cure(words)
