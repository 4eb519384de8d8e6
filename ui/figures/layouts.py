"""Layouts that were computed for a recording, and how the page waits for one."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import streamlit as st

from lab import layouts
from lab.layout_process import LayoutJob
from lab.neighbours import Neighbourhoods
from lab.percent import percent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lab.moment import Moment
    from lab.recording import Recording

KEPT = {"layout": 60, "neighbours": 4}  # of each recording; ranks of 1,000 points take 4 MB
_MADE: WeakKeyDictionary[Recording, dict[str, OrderedDict[Any, Any]]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Layout:
    """Positions (n, 2) of rows (n,) of the probe, and where they started; or a reason why there are none."""

    rows: NDArray[np.int64]
    positions: NDArray[np.float32] | None
    note: str


def made(recording: Recording, kind: str) -> OrderedDict[Any, Any]:
    """What was computed for a recording; it goes with it."""
    return _MADE.setdefault(recording, {}).setdefault(kind, OrderedDict())


def keep(recording: Recording, kind: str, key: Any, value: Any) -> None:
    """Remembers, and forgets the oldest beyond what there is room for."""
    held = made(recording, kind)
    held[key] = value
    while len(held) > KEPT[kind]:
        held.popitem(last=False)


def laid_out(moment: Moment, name: str, points: int, options: dict[str, Any], warm: bool) -> Layout:
    """The layout of a moment, computed once for all who ask; shows how far it is meanwhile.

    Args:
        moment: with embeddings.
        name: of the method.
        points: at most that many.
        options: of the method.
        warm: start from the nearest step that was laid out with the same options.
    """
    assert moment.measured is not None
    rows = layouts.sample(len(moment.measured), points)
    embeddings = moment.measured[rows]
    reason = layouts.missing(name) or layouts.refusal(name, embeddings)
    if reason:
        return Layout(rows, None, reason)
    settings = (name, points, tuple(sorted(options.items())), warm)
    key, held = (moment.frame.step, *settings), made(moment.recording, "layout")
    known: Layout | None = held.get(key)
    if known is not None:
        return known
    # a copy: the recording of a preset is shared, and others may add to it
    former = {step: done for (step, *rest), done in list(held.items()) if tuple(rest) == settings and warm}
    nearest = min(former, key=lambda step: abs(step - moment.frame.step), default=None)
    start = None if nearest is None else former[nearest].positions
    found = computed(LayoutJob(name, embeddings, options, start), rows)
    if found.positions is None:
        return found
    origin = "fresh" if nearest is None else f"from the layout of step {nearest}, and turned towards it"
    found = Layout(rows, found.positions, f"It started {origin}.")
    keep(moment.recording, "layout", key, found)
    return found


def computed(job: LayoutJob, rows: NDArray[np.int64]) -> Layout:
    """Waits for a job; a click elsewhere on the page ends it."""
    bar, began = st.progress(0.0), time.monotonic()
    try:
        while not job.wait(0.1):
            bar.progress(job.progress, text=f"{waiting_words(job)} ({time.monotonic() - began:.0f} s so far)")
    finally:
        if not job.wait(0):
            job.stop()
    bar.empty()
    return Layout(rows, job.positions, job.reason)


def waiting_words(job: LayoutJob) -> str:
    """What is waited for."""
    if job.waiting:
        return f"{job.title} waits: another layout is computed first"
    if not job.progress:
        compiling = "; compiling takes about 15 s the first time" if job.title == "UMAP" else ""
        return f"{job.title} begins{compiling}"
    return f"{job.title}: {percent(job.progress, 0)}"


def neighbourhoods(
    moment: Moment, rows: NDArray[np.int64], positions: NDArray[np.floating[Any]], view: Any
) -> Neighbourhoods:
    """Ranks of at least three rows among the embeddings and on the map, computed once."""
    assert moment.measured is not None
    key = (moment.frame.step, len(rows), view)
    both: Neighbourhoods | None = made(moment.recording, "neighbours").get(key)
    if both is None:
        both = Neighbourhoods(moment.measured[rows], positions)
        keep(moment.recording, "neighbours", key, both)
    return both
