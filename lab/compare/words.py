"""One moment of a comparison in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.compare import alignment
from lab.compare.alignment import Points
from lab.compare.duel import Contender
from lab.compare.line_up import LETTERS
from lab.compare.measures import MEASURES, best, value
from lab.insights import insights
from lab.measured_on import measured_on
from lab.recording import Recording
from lab.sweep.cell import RUINED
from losslib import catalog

LOSS_ROW, TIME_ROW = "loss of the batch", "time a step"


def shared_steps(recordings: Sequence[Recording]) -> list[int]:
    """The recorded steps that all runs have, in order."""
    return sorted(set.intersection(*({frame.step for frame in one.frames} for one in recordings)))


def laid_out(recordings: Sequence[Recording], step: int) -> list[Points]:
    """The maps at a step, all laid on the first."""
    first = recordings[0].at(step).positions
    turn_only = on_circle(recordings)
    others = [alignment.aligned(first, one.at(step).positions, turn_only) for one in recordings[1:]]
    return [first.astype(np.float64), *others]


def on_circle(recordings: Sequence[Recording]) -> bool:
    """Whether every map is the unit circle itself."""
    return all(alignment.on_circle(one.config) for one in recordings)


def moment(sides: Sequence[Contender], titles: Sequence[str], step: int, drawn: int) -> dict[str, Any]:
    """What is said at a step: of the maps, the table's rows, what has a cure."""
    recordings = [side.recording for side in sides]
    return {
        "maps": map_words(recordings, step, drawn),
        "rows": number_rows(sides, titles, step)[1:],
        "findings": findings(sides, titles, step),
    }


def map_words(recordings: Sequence[Recording], step: int, drawn: int) -> str:
    """What the maps show, and how each was laid on the first."""
    points = len(recordings[0].labels)
    circle = on_circle(recordings)
    recalls = [value(one, "recall_at_1", step) for one in recordings]
    said = ", ".join(f"{letter} {spelled(recall)}" for letter, recall in zip(LETTERS, recalls, strict=False))
    how = "turned and mirrored" if circle else "moved, scaled, turned and mirrored"
    how += " (and each point is drawn up to 6 % in or out, so that none hides another)" if circle else ""
    return (
        f"Step {step}: {min(points, drawn)} of {points} samples, the same in every map. Each map is {how} to "
        f"lie on A's as well as it can (Procrustes), so what still differs is the losses' doing. "
        f"Recall@1: {said}."
    )


def number_rows(sides: Sequence[Contender], titles: Sequence[str], step: int) -> list[list[str]]:
    """The table's rows, its head first; the best value of a row in Markdown's bold."""
    recordings = [side.recording for side in sides]
    chance = recordings[0].chance
    rows = [["measure", *titles, "held against"]]
    for measure in MEASURES:
        values = [value(one, measure.name, step) for one in recordings]
        winner = best(values, measure.better)
        cells = [f"**{spelled(v)}**" if place == winner else spelled(v) for place, v in enumerate(values)]
        reference = f"{measure.reference}; chance {chance:.2f}" if measure.share and chance else ""
        shown = reference if measure.name == "recall_at_1" else measure.reference
        better = f" ({measure.better} is better)" if measure.better else ""
        rows.append([f"{measure.title}{better}", *cells, shown])
    losses = [spelled(value(one, "loss", step)) for one in recordings]
    rows.append([LOSS_ROW, *losses, "each on its own scale: not to be compared"])
    times = [f"{side.ms_per_step:.2f} ms" if math.isfinite(side.ms_per_step) else "none" for side in sides]
    shipped = any("example" in side.recording.provenance for side in sides)
    where = "recorded with this example" if shipped else "this machine, now"
    rows.append([TIME_ROW, *times, f"{where}; median, one core"])
    return rows


def findings(sides: Sequence[Contender], titles: Sequence[str], step: int) -> str:
    """What `insights` sees at the step that has a cure."""
    said = []
    for title, side in zip(titles, sides, strict=True):
        frame = side.recording.at(step)
        said += [
            f"{title}: {found.sentence}"
            for found in insights(side.recording, frame)
            if found.kind in (*RUINED, "flat", "dead_margin")
        ]
    return " ".join(said)


def distance_words(recordings: Sequence[Recording], titles: Sequence[str]) -> str:
    """What each histogram measures."""
    distances = [catalog.get(one.config.loss).default_distance() for one in recordings]
    said = [f"{title} measures {within(d.title)}" for title, d in zip(titles, distances, strict=True)]
    samples = measured_on(recordings[0].config)
    return f"{'; '.join(said)}. Dashed: the loss's own thresholds. Pairs are of {samples} samples."


def within(title: str) -> str:
    """A distance's title within a sentence: without its capital, but for the names of people and norms."""
    keeps = title.startswith(("Euclidean", "Manhattan", "Chebyshev")) or title[1:2].isdigit()
    return title if keeps else title[0].lower() + title[1:]


def curves_words(recordings: Sequence[Recording], titles: Sequence[str]) -> str:
    """Where each run ends."""
    said = [
        f"{title} ends at recall@1 {spelled(value(one, 'recall_at_1', one.config.steps))} and MAP@R "
        f"{spelled(value(one, 'map_at_r', one.config.steps))}"
        for title, one in zip(titles, recordings, strict=True)
    ]
    return "; ".join(said) + "."


def spelled(number: float) -> str:
    """Three digits, or none."""
    return f"{round(number, 3) + 0.0:.3f}" if math.isfinite(number) else "none"
