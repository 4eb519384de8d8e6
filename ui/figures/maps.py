"""The map of a moment in several views, how honest the view is, and points chosen in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from lab.brief import brief
from lab.figures.embedding_map import Colouring, embedding_map
from lab.figures.neighbours_kept import neighbours_kept
from lab.layouts import MAX_POINTS, METHODS, SAMPLE_SIZES, sample
from lab.moment_words import kept_words, map_words
from ui.controls import help_text
from ui.figures.chosen import describe_chosen, hover_columns
from ui.figures.layouts import laid_out, neighbourhoods
from ui.figures.show import is_dark, show

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lab.moment import Moment
    from lab.neighbours import Neighbourhoods
    from losslib.params import Param

CLASS, KEPT, TRUST = "class", "neighbours kept", "trustworthiness"


@dataclass(frozen=True, eq=False)
class View:
    """A map: positions (n, 2) or (n, 3) of the rows (n,) of the probe, its name, and how it was made."""

    name: str
    title: str
    rows: NDArray[np.int64]
    positions: NDArray[np.floating[Any]]
    note: str
    key: Any


def map_section(now: Moment, images: NDArray[np.uint8] | None, with_map: bool, with_kept: bool) -> None:
    """Controls of the view, the map, and what the map keeps.

    Args:
        now: the moment.
        images: of all samples, (S, H, W), for thumbnails of chosen points; None where there are none.
        with_map: whether the map is wanted.
        with_kept: whether the figure of kept neighbours is wanted.
    """
    view = chosen_view(now)
    if view is None:
        return
    near = sample(len(view.rows), MAX_POINTS)
    most = (len(near) - 1) // 2 if now.embeddings is not None else 0
    if now.embeddings is None and with_kept:
        st.info(now.without_embeddings)
    k, by = neighbour_controls(most, with_map, with_kept) if most >= 1 else (1, CLASS)
    both = None
    if most >= 1 and (with_kept or by != CLASS):
        both = neighbourhoods(now, view.rows[near], view.positions[near], view.key)
    if with_map:
        draw_map(now, view, images, coloured(both, k, by), near if by != CLASS else None)
    if with_kept and both is not None:
        title = f"Neighbours kept by {view.title}, step {now.frame.step}"
        words = kept_words(both, k, f"the map ({view.title})")
        show(neighbours_kept(both, k, title), words, "kept", f"neighbours-step-{now.frame.step}")


def chosen_view(now: Moment) -> View | None:
    """Draws the choice of the view and its options; None when there is no such map, which is said."""
    titles = {"plane": "Two coordinates" if now.size <= 2 else "PCA"}
    if now.size >= 3:
        titles["space"] = "3-D map" if now.size == 3 else "PCA in 3-D"
    titles |= {name: method.title for name, method in METHODS.items()}
    name = st.segmented_control(
        "View",
        list(titles),
        default="plane",
        required=True,
        format_func=titles.__getitem__,
        key="figures.view in space" if now.size >= 3 else "figures.view",
        persist_state="session",
        help="PCA is the flat view that keeps most variance. t-SNE and UMAP keep near neighbours near; "
        "what is far apart on them says little.",
    )
    every = np.arange(len(now.recording.labels))
    step, title = now.frame.step, titles[name or "plane"]
    if name in METHODS or name == "space":
        if now.embeddings is None:
            st.info(now.without_embeddings)
            return None
        if name == "space":
            positions = now.in_space()
            assert positions is not None
            return View("space", title, every, positions, space_note(now), (step, "space"))
        return method_view(now, str(name))
    return View("plane", title, every, now.frame.positions, plane_note(now), (step, "plane"))


def plane_note(now: Moment) -> str:
    """How the flat map comes from the embeddings."""
    if now.size <= 2:
        return "The embeddings' own two coordinates."
    return f"The plane that keeps most of the variance of {now.size} coordinates (PCA)."


def space_note(now: Moment) -> str:
    """How the map in space comes from the embeddings."""
    if now.size == 3:
        return "The embeddings' own three coordinates. Drag to turn, scroll to zoom."
    return f"The three directions of most variance among {now.size} (PCA). Drag to turn, scroll to zoom."


def method_view(now: Moment, name: str) -> View | None:
    """A view by t-SNE or UMAP, with its options."""
    method = METHODS[name]
    assert now.measured is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = {key: option(param, f"figures.{name}.{key}") for key, param in method.options.items()}
        sizes = [size for size in SAMPLE_SIZES if size < len(now.measured)] or [MAX_POINTS]
        if len(now.measured) > sizes[-1] and sizes[-1] != MAX_POINTS:
            sizes.append(MAX_POINTS)
        points = st.selectbox(
            "Points",
            sizes,
            len(sizes) - 1,
            width=120,
            key=f"figures.{name}.points of {sizes[-1]}",
            help=f"A fixed sample of that many points; at most {MAX_POINTS:,}, so that others need not wait.",
        )
        warm = st.toggle(
            "Start from the former layout",
            True,
            key=f"figures.{name}.warm",
            help="Starts from the layout of the nearest step that has one, and turns the result towards it, "
            "so that points stay where they were. Off: starts afresh at every step.",
        )
    found = laid_out(now, name, points, options, warm)
    if found.positions is None:
        st.info(found.note)
        return None
    count, total = len(found.rows), len(now.recording.labels)
    of = f" A fixed sample of {count:,} of {total:,} points." if count < total else ""
    note = f"{method.summary} {found.note}{of}"
    key = (now.frame.step, name, points, warm, *sorted(options.items()))
    return View(name, method.title, found.rows, found.positions, note, key)


def option(param: Param, key: str) -> Any:
    """A slider for an option of a layout."""
    low, high = param.explore or (0, 1)
    kind = int if param.kind == "int" else float
    step = kind(param.step or 1)
    return st.slider(
        param.title,
        kind(low),
        kind(high),
        param.default,
        step,
        format="%g",
        key=key,
        help=help_text(param),
        width=220,
    )


def neighbour_controls(most: int, with_map: bool, with_kept: bool) -> tuple[int, str]:
    """What colours the map, and how many neighbours count: k up to `most` or 100."""
    by, k, most = CLASS, 1, min(100, most)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if with_map:
            by = st.segmented_control(
                "Colour by",
                [CLASS, KEPT, TRUST],
                default=CLASS,
                required=True,
                key="figures.colour",
                help="Class; or for every point the share of its k nearest neighbours that the map keeps; or "
                "how free its nearest on the map are of strangers (trustworthiness). 1 is best.",
            )
        if (with_kept or by != CLASS) and most > 1:
            k = st.slider(
                "Neighbours k",
                1,
                most,
                min(10, most),
                key=f"figures.k to {most}",
                width=220,
                help="How many nearest neighbours of each point are looked at. "
                "A larger value asks for the wider surroundings.",
            )
    return k, by or CLASS


def coloured(both: Neighbourhoods | None, k: int, by: str) -> Colouring | None:
    """The number behind a colouring; None colours by class."""
    if both is None or by == CLASS:
        return None
    if by == KEPT:
        return Colouring(by, both.kept_by_point(k))
    trust = both.trust_by_point(k)
    return Colouring(by, trust, low=min(0.9, np.floor(10 * trust.min()) / 10))


def draw_map(
    now: Moment,
    view: View,
    images: NDArray[np.uint8] | None,
    colouring: Colouring | None,
    near: NDArray[np.int64] | None,
) -> None:
    """The map, its summary, and what was chosen in it."""
    recording, space = now.recording, view.name == "space"
    rows = view.rows if near is None else view.rows[near]
    positions = view.positions if near is None else view.positions[near]
    classes, samples = recording.labels[rows], recording.probe[rows]
    figure = embedding_map(
        positions,
        classes,
        recording.class_names,
        samples,
        title=f"{view.title} at step {now.frame.step}",
        about=hover_columns(now, rows, brief(recording.class_names)),
        colouring=colouring,
        dark=is_dark(),
    )
    standing = None if now.standing is None else now.standing.of(rows)
    words = f"{view.note} {map_words(classes, recording.class_names, standing)}"
    state = show(figure, words, "map", f"map-step-{now.frame.step}", 600, choose=not space)
    if space:
        return
    numbers = [point["customdata"][0] for point in state.selection.points if point.get("customdata")]
    chosen = rows[np.isin(samples, numbers)]
    if len(chosen):
        describe_chosen(now, chosen, images)
    else:
        st.caption("Click, or choose with box or lasso, to see which points they are.")
