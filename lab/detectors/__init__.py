"""Detectors of what goes wrong, one file each: from a recording alone, so that a file tells as much as a run.

A detector's file has KIND, REPLACES (kinds of less specific findings that it makes superfluous) and
`find(recording, frame) -> Insight | None`. The failure gallery of the Learn page shows one failure for each.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from lab.detectors.finding import Insight
from lab.frame import Frame
from lab.recording import Recording


@dataclass(frozen=True)
class Detector:
    """One detector as its file declares it."""

    kind: str
    replaces: tuple[str, ...]
    find: Callable[[Recording, Frame], Insight | None]


@cache
def detectors() -> tuple[Detector, ...]:
    """All detectors by kind."""
    modules = [
        importlib.import_module(f"{__name__}.{entry.name}") for entry in pkgutil.iter_modules(__path__)
    ]
    found = [Detector(one.KIND, one.REPLACES, one.find) for one in modules if hasattr(one, "KIND")]
    return tuple(sorted(found, key=lambda detector: detector.kind))


def detected(recording: Recording, frame: Frame) -> tuple[list[Insight], set[str]]:
    """What the detectors find at a frame, and the kinds of findings that this makes superfluous."""
    found, superfluous = [], set()
    for detector in detectors():
        insight = detector.find(recording, frame)
        if insight is not None:
            found.append(insight)
            superfluous |= set(detector.replaces)
    return found, superfluous
