"""Whether a comparison was fair, read from the recordings, and how far two runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.config import RunConfig
from lab.recording import Recording
from lab.settings import settings
from lab.titles import called

OWN = ("loss", "loss_options", "lr", "device", "events")  # what contenders may have of their own


def same_start(recordings: Sequence[Recording]) -> bool:
    """Whether all maps of step 0 are equal bit for bit, as equal initial weights make them."""
    firsts = [recording.frames[0].positions for recording in recordings if recording.frames]
    return len(firsts) == len(recordings) and all(np.array_equal(firsts[0], one) for one in firsts)


def same_batches(recordings: Sequence[Recording]) -> int:
    """At how many recorded steps all runs saw the same samples; -1 when they differ at one."""
    runs = [{frame.step: frame.batch.index for frame in recording.frames} for recording in recordings]
    common = set.intersection(*(set(run) for run in runs)) if runs else set()
    alike = all(np.array_equal(np.sort(runs[0][s]), np.sort(run[s])) for s in common for run in runs)
    return len(common) if alike else -1


def sentences(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """What was checked, and what these runs do not share."""
    configs = [recording.config for recording in recordings]
    said = []
    shared = [field.name for field in fields(RunConfig) if field.name not in OWN]
    differing = [
        called(name) if name in settings() else name.replace("_", " ")
        for name in shared
        if len({getattr(config, name) for config in configs}) > 1
    ]
    if differing:
        said.append(f"They differ in {' and '.join(differing)}, so more than the loss is compared.")
    if len({config.lr for config in configs}) > 1:
        said.append("Their learning rates differ, as chosen.")
    if same_start(recordings):
        said.append("Checked: all begin with the same weights (their maps at step 0 are equal)")
    else:
        said.append("Their maps at step 0 differ, so they do not begin with the same weights")
    steps = same_batches(recordings)
    if steps > 0:
        said[-1] += f" and saw the same samples at all {steps} recorded steps that they share."
    else:
        said[-1] += ", and their batches differ." if steps < 0 else "."
    return tuple(said)


def largest_difference(first: Recording, second: Recording) -> float:
    """The largest difference of two runs in any number of any curve, map or histogram; 0 for equal runs.

    Infinite when one has a frame or a number that the other lacks.
    """
    mine, theirs = first.curves(), second.curves()
    if [f.step for f in first.frames] != [f.step for f in second.frames]:
        return float("inf")
    pairs: list[tuple[NDArray[Any], NDArray[Any]]] = [(mine[name], theirs[name]) for name in mine]
    for a, b in zip(first.frames, second.frames, strict=True):
        pairs += [
            (a.positions, b.positions),
            (a.histogram.positive, b.histogram.positive),
            (a.histogram.negative, b.histogram.negative),
            (np.array(a.histogram[:2]), np.array(b.histogram[:2])),
        ]
    return max((_apart(a, b) for a, b in pairs), default=0.0)


def _apart(a: NDArray[Any], b: NDArray[Any]) -> float:
    if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    mine, theirs = a.astype(np.float64), b.astype(np.float64)
    unlike = (mine != theirs) & ~np.isnan(mine)  # equal infinities have no difference
    return float(np.abs(mine[unlike] - theirs[unlike]).max(initial=0.0))
