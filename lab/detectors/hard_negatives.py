"""Hardest-negative collapse: the miner shows only the hardest pairs, and all embeddings meet in one point."""

from __future__ import annotations

from lab.config import RunConfig
from lab.detectors.finding import Cure, Insight, is_collapsed, still_apart
from lab.frame import Frame
from lab.recording import Recording
from lab.short import short

KIND = "hard_negatives"
REPLACES = ("collapse",)


def find(recording: Recording, frame: Frame) -> Insight | None:
    """Collapsed while the miner draws the hardest negatives."""
    config = recording.config
    if not mines_the_hardest(config) or not is_collapsed(recording, frame):
        return None
    cosine = frame.collapse["mean_cosine"]
    sentence = (
        f"Hardest-negative collapse: the miner shows the hardest negatives alone, and all embeddings have "
        f"met in nearly one point: mean cosine {cosine:.3f} (collapsed is 1), loss {short(frame.loss)}."
    )
    sentence += still_apart(recording, frame)
    cure = Cure("Mine semi-hard negatives, or none, and begin again.", "miner", "none")
    return Insight(KIND, sentence, "mean_cosine", cosine, cure)


def mines_the_hardest(config: RunConfig) -> bool:
    """Whether the miner leaves an anchor no negative but the hardest."""
    values = config.miner_values
    return (
        config.miner == "BatchHardMiner"
        or values.get("neg_strategy") == "hard"
        or values.get("type_of_triplets") == "hard"
    )
