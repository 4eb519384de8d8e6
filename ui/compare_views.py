"""One moment of a comparison: maps, numbers, distances, curves, and who moved most."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

import datasets
from lab import glossary
from lab.compare import alignment, fairness
from lab.compare.line_up import LETTERS, names
from lab.compare.measures import MEASURES, best, value
from lab.compare.moved import Moved, displacement, moved
from lab.compare.thumbnail import image_address
from lab.insights import insights
from lab.sweep.cell import RUINED
from losslib import catalog
from ui import reports
from ui.figures.show import show
from ui.home import theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from lab.compare.alignment import Points
    from lab.compare.duel import Contender
    from lab.recording import Recording

MOST_POINTS = 600  # drawn a map; the numbers are of all
CURVES = MEASURES[:6]


@st.fragment
def moment(sides: Sequence[Contender]) -> None:
    """Everything that the one slider moves."""
    recordings = [side.recording for side in sides]
    steps = sorted(set.intersection(*({frame.step for frame in one.frames} for one in recordings)))
    step = steps[-1]
    if len(steps) > 1:
        step = st.select_slider(
            "Step of all runs",
            steps,
            steps[-1],
            key="compare.step",
            bind="query-params",
            help="One clock for all: the recorded steps that they share, close together early, further "
            "apart late.",
        )
    titles = names([one.config for one in recordings])
    maps = laid_out(recordings, step)
    show_maps(recordings, maps, titles, step)
    numbers(sides, titles, step)
    reports.comparison_button(sides, titles, step)
    show_distances(recordings, titles, step)
    # These do not follow the slider: figures that stay the same are not drawn again.
    show_curves(recordings, titles)
    who_moved(recordings, laid_out(recordings, steps[-1]), titles, steps[-1])


def laid_out(recordings: Sequence[Recording], step: int) -> list[Points]:
    """The maps at a step, all laid on the first."""
    first = recordings[0].at(step).positions
    turn_only = all(alignment.on_circle(one.config) for one in recordings)
    others = [alignment.aligned(first, one.at(step).positions, turn_only) for one in recordings[1:]]
    return [first.astype(np.float64), *others]


# Thirty people who look at one comparison share its figures.


@lru_cache(maxsize=64)
def maps_figure(
    recordings: tuple[Recording, ...], titles: tuple[str, ...], step: int, palette: tuple[str, ...]
) -> go.Figure:
    """The maps at a step."""
    from lab.figures.compared_maps import compared_maps

    first, drawn = recordings[0], slice(MOST_POINTS)
    circle = all(alignment.on_circle(one.config) for one in recordings)
    maps = [points[drawn] for points in laid_out(recordings, step)]
    shown = [scattered(points) for points in maps] if circle else maps
    return compared_maps(shown, first.labels[drawn], first.class_names, titles, first.probe[drawn], palette)


@lru_cache(maxsize=64)
def distances_figure(
    recordings: tuple[Recording, ...], titles: tuple[str, ...], step: int, palette: tuple[str, ...]
) -> go.Figure:
    """The histograms at a step."""
    from lab.figures.compared_distances import compared_distances

    frames = [one.at(step) for one in recordings]
    distances = [catalog.get(one.config.loss).default_distance() for one in recordings]
    axes = [f"{'larger' if d.is_inverted else 'smaller'} is closer" for d in distances]
    return compared_distances(
        [frame.histogram for frame in frames], titles, axes, [frame.marks for frame in frames], palette
    )


@lru_cache(maxsize=64)
def curves_figure(
    recordings: tuple[Recording, ...], titles: tuple[str, ...], palette: tuple[str, ...]
) -> go.Figure:
    """The curves of the whole runs."""
    from lab.figures.compared_curves import compared_curves

    return compared_curves([one.curves() for one in recordings], titles, CURVES, colours=palette)


def show_maps(
    recordings: Sequence[Recording], maps: Sequence[Points], titles: Sequence[str], step: int
) -> None:
    """The maps side by side, and what is to be said of them."""
    first = recordings[0]
    circle = all(alignment.on_circle(one.config) for one in recordings)
    recalls = [value(one, "recall_at_1", step) for one in recordings]
    said = ", ".join(f"{letter} {spelled(recall)}" for letter, recall in zip(LETTERS, recalls, strict=False))
    figure = maps_figure(tuple(recordings), tuple(titles), step, theme().palette)
    how = "turned and mirrored" if circle else "moved, scaled, turned and mirrored"
    how += " (and each point is drawn up to 6 % in or out, so that none hides another)" if circle else ""
    count = f"{min(len(first.labels), MOST_POINTS)} of {len(first.labels)} samples"
    words = (
        f"Step {step}: {count}, the same in every map. Each map is {how} to lie on A's as well as it can "
        f"(Procrustes), so what still differs is the losses' doing. Recall@1: {said}."
    )
    show(figure, words, "compare maps", f"comparison-maps-{step}", 420)


def scattered(points: Points) -> Points:
    """Points of a circle a little inside or outside of it, each always by the same share."""
    away = 0.94 + 0.12 * (np.arange(len(points)) * 0.6180339887 % 1.0)
    drawn: Points = points * away[:, None]
    return drawn


def numbers(sides: Sequence[Contender], titles: Sequence[str], step: int) -> None:
    """A table: what does not depend on a loss's scale, then the loss itself and the time of a step."""
    head, *rows = number_rows(sides, titles, step)
    shown = [head, ["---"] * len(head), *rows]
    st.markdown("\n".join("| " + " | ".join(cells) + " |" for cells in shown))
    notes = findings(sides, titles, step)
    if notes:
        st.caption(notes)
    with st.expander("What these numbers are"):
        st.markdown(
            "\n".join(f"- **{one.title}**: {glossary.define(one.title)}" for one in MEASURES)
            + "\n- **time a step**: milliseconds of one update (sampling, encoder, loss, gradient, "
            "optimiser) that one core spends on it, median of the steps without a frame. The runs take "
            "turns, so whatever else the machine does slows all alike. Another machine has other times."
        )


def number_rows(sides: Sequence[Contender], titles: Sequence[str], step: int) -> list[list[str]]:
    """The table's rows, its head first; the best value of a row in Markdown's bold."""
    recordings = [side.recording for side in sides]
    chance = chance_of(recordings[0])
    rows = [["", *titles, "held against"]]
    for measure in MEASURES:
        values = [value(one, measure.name, step) for one in recordings]
        winner = best(values, measure.better)
        cells = [f"**{spelled(v)}**" if place == winner else spelled(v) for place, v in enumerate(values)]
        reference = f"{measure.reference}; chance {chance:.2f}" if measure.share and chance else ""
        shown = reference if measure.name == "recall_at_1" else measure.reference
        better = f" ({measure.better} is better)" if measure.better else ""
        rows.append([f"{measure.title}{better}", *cells, shown])
    losses = [spelled(value(one, "loss", step)) for one in recordings]
    rows.append(["loss of the batch", *losses, "each on its own scale: not to be compared"])
    times = [f"{side.ms_per_step:.2f} ms" if math.isfinite(side.ms_per_step) else "none" for side in sides]
    shipped = any("example" in side.recording.provenance for side in sides)
    where = "recorded with this example" if shipped else "this machine, now"
    rows.append(["time a step", *times, f"{where}; median, one core"])
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


def show_distances(recordings: Sequence[Recording], titles: Sequence[str], step: int) -> None:
    """Histograms, each on its own loss's axis."""
    figure = distances_figure(tuple(recordings), tuple(titles), step, theme().palette)
    distances = [catalog.get(one.config.loss).default_distance() for one in recordings]
    said = [f"{title} measures {d.title}" for title, d in zip(titles, distances, strict=True)]
    st.subheader("Distances of pairs", anchor=False)
    words = f"{'; '.join(said)}. Dashed: the loss's own thresholds. Pairs are of held-out samples."
    show(figure, words, "compare distances", f"comparison-pairs-{step}", 300)


def show_curves(recordings: Sequence[Recording], titles: Sequence[str]) -> None:
    """All runs overlaid."""
    st.subheader("Over the steps", anchor=False)
    figure = curves_figure(tuple(recordings), tuple(titles), theme().palette)
    show(figure, curves_words(recordings, titles), "compare curves", "comparison-curves", 640)


def curves_words(recordings: Sequence[Recording], titles: Sequence[str]) -> str:
    """Where each run ends."""
    said = [
        f"{title} ends at recall@1 {spelled(value(one, 'recall_at_1', one.config.steps))} and MAP@R "
        f"{spelled(value(one, 'map_at_r', one.config.steps))}"
        for title, one in zip(titles, recordings, strict=True)
    ]
    return "; ".join(said) + "."


def who_moved(
    recordings: Sequence[Recording], maps: Sequence[Points], titles: Sequence[str], step: int
) -> None:
    """The samples that lie furthest apart between two of the maps at the end."""
    from lab.figures.moved_points import moved_points

    st.subheader("Who ended where", anchor=False)
    pairs = list(itertools.combinations(range(len(maps)), 2))
    chosen = st.selectbox(
        "Between",
        pairs,
        format_func=lambda pair: f"{LETTERS[pair[0]]} and {LETTERS[pair[1]]}",
        key="compare between",
        help="The two maps whose places are compared, the second laid on the first.",
    )
    first, second = chosen
    one, other = recordings[first], recordings[second]
    laid = alignment.aligned(
        maps[first], maps[second], alignment.on_circle(one.config) and alignment.on_circle(other.config)
    )
    gaps = displacement(maps[first], laid)
    if fairness.largest_difference(one, other) == 0:
        st.success(
            f"{titles[first]} and {titles[second]}: no number of any frame differs; the difference is 0."
        )
        return
    found = moved(maps[first], laid, one.labels, one.probe)
    left, right = st.columns(2)
    with left:
        figure = moved_points(
            maps[first], laid, found, one.class_names, (titles[first], titles[second]), theme().palette
        )
        words = f"Dots on {LETTERS[first]}, lines to where {LETTERS[second]} has the same samples."
        show(figure, words, "compare moved", f"comparison-moved-{step}", 440)
    with right:
        st.html(listing(found, one, (LETTERS[first], LETTERS[second])))
    strangers = sum(m.neighbour_second != m.label for m in found)
    st.caption(
        f"At step {step}, half of the samples moved less than {np.median(gaps):.2f} root mean square radii "
        f"of the map, the furthest {gaps.max():.2f}. Of the {len(found)} listed, {strangers} have a "
        f"neighbour of another class on the map of {LETTERS[second]}."
    )


def listing(found: Sequence[Moved], recording: Recording, letters: tuple[str, str]) -> str:
    """The movers as a table, with their pictures where the data have them."""
    config = recording.config
    images = datasets.load(config.data, config.seed, **config.data_values).images
    names_, rows = recording.class_names, []
    for rank, one in enumerate(found, start=1):
        picture = ""
        if images is not None:
            address = image_address(images[one.sample])
            picture = f'<td><img alt="sample {one.sample}" width="28" height="28" src="{address}"></td>'
        cells = (
            rank,
            one.sample,
            names_[one.label],
            f"{one.distance:.2f}",
            names_[one.neighbour_first],
            names_[one.neighbour_second],
        )
        rows.append(f"<tr>{picture}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    empty = "<th></th>" if images is not None else ""
    titles = ("", "sample", "class", "moved", *(f"nearest on {letter}" for letter in letters))
    head = empty + "".join(f"<th>{title}</th>" for title in titles)
    style = "width:100%;font-size:0.9rem;border-collapse:collapse;text-align:left"
    return f'<div style="overflow-x:auto"><table style="{style}"><tr>{head}</tr>{"".join(rows)}</table></div>'


def chance_of(recording: Recording) -> float:
    """Recall@1 of a guess."""
    return recording.chance


def spelled(number: float) -> str:
    """Three digits, or none."""
    return f"{round(number, 3) + 0.0:.3f}" if math.isfinite(number) else "none"
