"""A finished comparison: the replay under one slider, the moment at rest as figures, and who moved most."""

from __future__ import annotations

import html
import itertools
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

import datasets
from lab.brief import brief
from lab.compare import alignment, fairness, words
from lab.compare.line_up import LETTERS, names
from lab.compare.measures import MEASURES
from lab.compare.moved import Moved, displacement, moved
from lab.compare.thumbnail import image_address
from losslib import catalog
from ui import address, left, reports
from ui.figures.show import show
from ui.home import theme
from ui.replay.panel import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from lab.compare.alignment import Points
    from lab.compare.duel import Contender
    from lab.recording import Recording

MOST_POINTS = 600  # drawn a figure; the numbers are of all
CURVES = MEASURES[:6]
STEP, FIGURES = "compare.step", "compare.figures"


def everything(sides: Sequence[Contender]) -> None:
    """The replay and what belongs to its step, then what does not follow it."""
    recordings = [side.recording for side in sides]
    titles = names([one.config for one in recordings])
    moment(sides, titles, step_of_link(words.shared_steps(recordings)))
    who_moved(recordings, titles)


@st.fragment
def moment(sides: Sequence[Contender], titles: Sequence[str], start: int) -> None:
    """The replay; at rest it tells its step, which the report, the link and the figures take.

    start: where a replay that is drawn for the first time begins; equal for as long as the slider moves, so
        that the runs are not sent again.
    """
    recordings = [side.recording for side in sides]
    steps = words.shared_steps(recordings)
    replay(tuple(sides), tuple(titles), start, on_rest=lambda told: keep(told, steps))
    step = step_of_link(steps)
    with st.container(horizontal=True, vertical_alignment="center"):
        reports.comparison_button(sides, titles, step)
        wanted = st.toggle(
            "Figures of this step",
            key=FIGURES,
            bind="query-params",
            help="The step at rest as figures that zoom, show values and can be saved as HTML, CSV or PNG.",
        )
    if wanted:
        show_maps(recordings, titles, step)
        show_distances(recordings, titles, step)
        show_curves(recordings, titles, step)


def step_of_link(steps: Sequence[int]) -> int:
    """The last shared step at or before the link's; without one the last."""
    text = address.text(STEP)
    asked = int(text) if text.isdecimal() else steps[-1]
    return max((step for step in steps if step <= asked), default=steps[0])


def keep(step: int, steps: Sequence[int]) -> None:
    """The link holds the step at rest; the last one is the default and stays out of it."""
    address.hold({STEP: "" if step == steps[-1] else str(step)})
    left.note()


# Thirty people who look at one comparison share its figures.


@lru_cache(maxsize=64)
def maps_figure(
    recordings: tuple[Recording, ...], titles: tuple[str, ...], step: int, palette: tuple[str, ...]
) -> go.Figure:
    """The maps at a step."""
    from lab.figures.compared_maps import compared_maps

    first, drawn = recordings[0], slice(MOST_POINTS)
    maps = [points[drawn] for points in words.laid_out(recordings, step)]
    shown = [scattered(points) for points in maps] if words.on_circle(recordings) else maps
    return compared_maps(shown, first.labels[drawn], first.class_names, titles, first.probe[drawn], palette)


@lru_cache(maxsize=64)
def distances_figure(
    recordings: tuple[Recording, ...], titles: tuple[str, ...], step: int, palette: tuple[str, ...]
) -> go.Figure:
    """The histograms at a step."""
    from lab.figures.compared_distances import compared_distances

    frames = [one.at(step) for one in recordings]
    distances = [catalog.get(one.config.loss).default_distance() for one in recordings]
    axes = ["closer →" if d.is_inverted else "← closer" for d in distances]  # short: charts get narrow
    return compared_distances(
        [frame.histogram for frame in frames], titles, axes, [frame.marks for frame in frames], palette
    )


@lru_cache(maxsize=64)
def curves_figure(
    recordings: tuple[Recording, ...],
    titles: tuple[str, ...],
    palette: tuple[str, ...],
    step: int | None = None,
) -> go.Figure:
    """The curves of the whole runs, with a line at a step."""
    from lab.figures.compared_curves import compared_curves

    return compared_curves([one.curves() for one in recordings], titles, CURVES, step, colours=palette)


def show_maps(recordings: Sequence[Recording], titles: Sequence[str], step: int) -> None:
    """The maps side by side, and what is to be said of them."""
    figure = maps_figure(tuple(recordings), tuple(titles), step, theme().palette)
    said = words.map_words(recordings, step, MOST_POINTS)
    show(figure, said, "compare maps", f"comparison-maps-{step}", 420)


def scattered(points: Points) -> Points:
    """Points of a circle a little inside or outside of it, each always by the same share."""
    away = 0.94 + 0.12 * (np.arange(len(points)) * 0.6180339887 % 1.0)
    drawn: Points = points * away[:, None]
    return drawn


def show_distances(recordings: Sequence[Recording], titles: Sequence[str], step: int) -> None:
    """Histograms, each on its own loss's axis."""
    st.header("Distances of pairs", anchor=False)
    figure = distances_figure(tuple(recordings), tuple(titles), step, theme().palette)
    said = words.distance_words(recordings, titles)
    show(figure, said, "compare distances", f"comparison-pairs-{step}", 300)


def show_curves(recordings: Sequence[Recording], titles: Sequence[str], step: int) -> None:
    """All runs overlaid."""
    st.header("Over the steps", anchor=False)
    figure = curves_figure(tuple(recordings), tuple(titles), theme().palette, step)
    said = words.curves_words(recordings, titles)
    show(figure, said, "compare curves", "comparison-curves", 640)


@st.fragment
def who_moved(recordings: Sequence[Recording], titles: Sequence[str]) -> None:
    """The samples that lie furthest apart between two of the maps at the end."""
    from lab.figures.moved_points import moved_points

    step = words.shared_steps(recordings)[-1]
    maps = words.laid_out(recordings, step)
    st.header("Who ended where", anchor=False)
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
        said = f"Dots on {LETTERS[first]}, lines to where {LETTERS[second]} has the same samples."
        show(figure, said, "compare moved", f"comparison-moved-{step}", 440)
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
    whole, shown, rows = recording.class_names, brief(recording.class_names), []

    def label(c: int) -> str:
        told = "" if shown[c] == whole[c] else f' title="{html.escape(whole[c], quote=True)}"'
        # three long names beside each other would push the last column out of sight
        wraps = ' style="overflow-wrap:anywhere"' if len(shown[c]) > 12 else ""
        return f"<td{told}{wraps}>{html.escape(shown[c])}</td>"

    for rank, one in enumerate(found, start=1):
        picture = ""
        if images is not None:
            address = image_address(images[one.sample])
            picture = f'<td><img alt="sample {one.sample}" width="28" height="28" src="{address}"></td>'
        rows.append(
            f"<tr>{picture}<td>{rank}</td><td>{one.sample}</td>{label(one.label)}<td>{one.distance:.2f}</td>"
            f"{label(one.neighbour_first)}{label(one.neighbour_second)}</tr>"
        )
    pictured = "<th>picture</th>" if images is not None else ""
    titles = ("place", "sample", "class", "moved", *(f"nearest on {letter}" for letter in letters))
    head = pictured + "".join(f"<th>{title}</th>" for title in titles)
    head = head.replace("<th>", '<th style="padding-right:0.6rem">')
    style = "width:100%;font-size:0.9rem;border-collapse:collapse;text-align:left"
    return f'<div style="overflow-x:auto"><table style="{style}"><tr>{head}</tr>{"".join(rows)}</table></div>'
