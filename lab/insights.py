"""What a recording says, in plain sentences: each with its figure and, where there is one, the cure."""

from __future__ import annotations

import math

import numpy as np

from lab.config import LEARNING_RATE, RunConfig, in_force
from lab.detectors import detected
from lab.detectors.finding import (
    COLLAPSED_COSINE,
    DEAD_SHARE,
    SETTLED,
    Cure,
    Insight,
    has_vanished,
    is_collapsed,
    still_apart,
    temperature_cure,
)
from lab.frame import Frame
from lab.recording import Recording
from lab.settings import settings
from losslib import catalog

__all__ = ["Cure", "Insight", "insights"]

FLAT_RANK = 1.2
FEW_NEGATIVES = 3.0
LOW_TEMPERATURE = 0.03
NARROW_COSINE = 0.7
NO_BETTER = 1.2  # times chance
# what lying at one point brings with it: said as its cause or its cure, not beside it
OF_ONE_POINT = {"flat", "vanished_gradient", "dead_margin", "slow_points"}
FAST_POINTS = 0.01  # a learning rate that can be ten times as high without an encoder


def insights(recording: Recording, frame: Frame | None = None) -> tuple[Insight, ...]:
    """Findings at a frame (by default the newest), troubles first.

    Args:
        recording: the run so far.
        frame: one of its frames.
    """
    frame = frame or recording.latest
    found = [_divergence(recording)]
    superfluous: set[str] = set()
    if frame is not None:
        config = recording.config
        specific, superfluous = detected(recording, frame)
        if is_collapsed(recording, frame):
            superfluous |= OF_ONE_POINT
        found += [
            _no_positives(config, frame),
            *specific,
            _collapse(recording, frame),
            _flat(config, frame),
            _vanished(recording, frame),
            _dead_margin(config, frame),
            _low_temperature(config, frame),
            _slow_points(recording, frame),
            _active_share(recording, frame),
        ]
    return tuple(one for one in found if one is not None and one.kind not in superfluous)


def _divergence(recording: Recording) -> Insight | None:
    if recording.state != "diverged" and not recording.reason:
        return None
    rate = in_force(recording.config)["lr"]
    cure = Cure("Lower the learning rate and begin again.", "lr", _calmer(rate))
    if not recording.frames:  # before any update: the learning rate has had no part in it
        cure = Cure("Change the options of the loss, or the data, and begin again.")
    return Insight("divergence", recording.reason, "learning_rate", rate, cure)


def _calmer(rate: float) -> str:
    """A tenth of the rate, but no more than the default: a rate that is far too high is so by many tenths."""
    return f"{min(rate / 10, settings()[LEARNING_RATE].default):g}"


def _no_positives(config: RunConfig, frame: Frame) -> Insight | None:
    rows = len(frame.batch.labels)
    if frame.batch.positive.any():
        return None
    if config.pairing == "continuous":
        sentence = f"No positive pair in the batch: no two of {rows} labels are within {config.delta:g}."
        wider = Cure("Let positives differ by more.", "delta", f"{2 * config.delta or 0.05:g}")
        return Insight("no_positives", sentence, "active_share", frame.active_share, wider)
    sentence = f"No positive pair in the batch: all {rows} samples have different labels."
    cure = Cure("Draw at least two samples a class.", "per_class", "4")
    return Insight("no_positives", sentence, "active_share", frame.active_share, cure)


def _collapse(recording: Recording, frame: Frame) -> Insight | None:
    cosine, spread = frame.collapse["mean_cosine"], frame.collapse["spread"]
    first = recording.frames[0].collapse["spread"]
    if not is_collapsed(recording, frame):
        return None
    if frame.at_origin:
        sentence = f"All embeddings are the zero vector: their spread is 0, at first it was {first:.2g}."
        figure, value = "spread", spread
    elif cosine > COLLAPSED_COSINE:
        sentence = f"All embeddings point the same way: their mean cosine is {cosine:.3f} (collapsed is 1)."
        figure, value = "mean_cosine", cosine
    else:
        sentence = (
            f"The embeddings have shrunk to nearly one point: spread {spread:.2g}, at first {first:.2g}."
        )
        figure, value = "spread", spread
    cause = _vanished(recording, frame) or _dead_margin(recording.config, frame)
    cure = Cure("Lower the learning rate, or take a loss that pushes negatives apart, and begin again.")
    if cause is not None and cause.cure is not None:
        cure = cause.cure
    elif frame.at_origin:  # another loss is no cure: it cannot turn a vector without direction
        cure = Cure("Lower the learning rate and begin again.")
    return Insight("collapse", sentence + still_apart(recording, frame), figure, value, cure)


def _flat(config: RunConfig, frame: Frame) -> Insight | None:
    rank = frame.collapse["effective_rank"]
    if frame.step < SETTLED or config.dim < 3 or rank > FLAT_RANK or frame.at_origin:
        return None
    sentence = f"The embeddings use {rank:.1f} of {config.dim} directions: they lie on a line."
    cure = Cure("Take a loss that spreads negatives, or a smaller embedding size.")
    return Insight("flat", sentence, "effective_rank", rank, cure)


def _vanished(recording: Recording, frame: Frame) -> Insight | None:
    if not has_vanished(recording, frame):
        return None
    first, now = recording.frames[0].gradient_norm, frame.gradient_norm
    sentence = (
        f"The gradient does not reach the encoder: its norm is {now:.1g}, at first it was {first:.2g}, "
        f"although {100 * frame.active_share:.0f} % of the pairs are active. "
        "A long step has thrown the weights too far."
    )
    rate = in_force(recording.config)["lr"]
    cure = Cure("Lower the learning rate and begin again.", "lr", _calmer(rate))
    return Insight("vanished_gradient", sentence, "gradient_norm", now, cure)


def _dead_margin(config: RunConfig, frame: Frame) -> Insight | None:
    hinge = catalog.get(config.loss).activity == "hinge"
    if not hinge or math.isnan(frame.active_share) or frame.active_share >= DEAD_SHARE:
        return None
    if catalog.get(config.loss).family == "triplet" and not frame.batch.positive.any():
        return None  # no triplets, which no margin would change
    share = f"{100 * frame.active_share:.1f} %"
    sentence = f"Almost every pair of the batch satisfies the margin: {share} still have a gradient."
    margin = next((m for m in frame.marks if m.kind in ("line", "gap") and m.side != "positive"), None)
    name = _margin_option(config)
    if margin is None or not name:
        cure = Cure("Ask for a larger margin.")
    else:
        now = in_force(config)[name]
        nearer = -1 if _is_similarity(config) and margin.kind == "line" else 1
        cure = Cure("Ask for a larger margin.", f"{config.loss}.{name}", f"{now + nearer * 0.2:g}")
    return Insight("dead_margin", sentence, "active_share", frame.active_share, cure)


def _low_temperature(config: RunConfig, frame: Frame) -> Insight | None:
    mark = next((m for m in frame.marks if m.kind == "temperature"), None)
    if mark is None or mark.value >= LOW_TEMPERATURE:
        return None
    seen, cosine = _negatives_seen(frame), frame.collapse["mean_cosine"]
    if seen < FEW_NEGATIVES:
        sentence = (
            f"At temperature {mark.value:g} half of the anchors see at most {seen:.0f} of their negatives: "
            "only the nearest carry weight, and noise steers the training."
        )
    elif frame.step >= SETTLED and cosine > NARROW_COSINE:
        sentence = (
            f"At temperature {mark.value:g} the embeddings stay in a narrow cone (mean cosine {cosine:.2f}): "
            f"a similarity {mark.value * math.log(100):.2g} lower already weighs a hundredth: nothing asks "
            "for more room."
        )
    else:
        return None
    cure = temperature_cure(config, warmer=True)
    return Insight("low_temperature", sentence, "active_share", frame.active_share, cure)


def _slow_points(recording: Recording, frame: Frame) -> Insight | None:
    config, recall = recording.config, frame.quality["recall_at_1"]
    if config.encoder != "free" or frame.step < SETTLED or recall is None:
        return None
    if not recall < NO_BETTER * recording.chance:
        return None
    drawn = frame.step * config.batch / len(recording.probe)
    sentence = (
        f"Recall@1 is {100 * recall:.0f} %, still at chance ({100 * recording.chance:.0f} %): "
        f"without an encoder a point moves only when it is drawn, so far about {drawn:.2g} times each."
    )
    rate = in_force(config)[LEARNING_RATE]
    faster = f"{10 * rate:g}" if rate <= FAST_POINTS else ""
    words = "Train on, or raise the learning rate." if faster else "Train on."
    cure = Cure(words, LEARNING_RATE if faster else "", faster)
    return Insight("slow_points", sentence, "recall_at_1", recall, cure)


def _negatives_seen(frame: Frame) -> float:
    """Number of negatives that the median anchor has above 1 % of its heaviest one's weight; NaN without any.

    The median, because anchors without a near negative see many, all of next to no weight.
    """
    weights = frame.batch.weights.astype(float)
    weights[frame.batch.positive] = 0
    largest = weights.max(axis=1, keepdims=True)
    moved = largest[:, 0] > 0
    seen = (weights > 0.01 * largest).sum(axis=1)
    return float(np.median(seen[moved])) if moved.any() else math.nan


def _active_share(recording: Recording, frame: Frame) -> Insight | None:
    share = frame.active_share
    if math.isnan(share):
        return None
    shown = "Less than 1" if 0 < share < 0.01 else f"{100 * share:.0f}"
    sentence = f"{shown} % of the batch's pairs are active: "
    if share == 0 and not frame.batch.positive.any():
        sentence = "No pair of the batch has a gradient, and none is positive."
    elif share == 0:
        sentence = "No pair of the batch has a gradient: the loss asks for nothing more."
    elif frame.gradient_norm == 0 or has_vanished(recording, frame):
        sentence += "the loss still weighs them, but no gradient reaches the encoder."
    else:
        sentence += "they still have a gradient."
    return Insight("active_share", sentence, "active_share", share)


def _margin_option(config: RunConfig) -> str:
    declared = catalog.get(config.loss).params
    return next((name for name in ("neg_margin", "margin") if name in declared), "")


def _is_similarity(config: RunConfig) -> bool:
    distance = catalog.get(config.loss).default_distance()
    return bool(getattr(distance, "is_inverted", False))
